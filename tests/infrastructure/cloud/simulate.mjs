// Answers for each line of standard input, a simulation of @cloud-copilot/iam-simulate, how IAM decides.
import { createInterface } from 'node:readline'
import { runSimulation } from '@cloud-copilot/iam-simulate'

for await (const line of createInterface({ input: process.stdin })) {
  const result = await runSimulation(JSON.parse(line), {})
  const answer = result.resultType === 'error' ? result.errors : result.overallResult ?? result.result?.evaluationResult
  process.stdout.write(JSON.stringify(answer) + '\n')
}
