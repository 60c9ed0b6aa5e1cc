"""The metrics of the dashboard and the alarms."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn

from cdk.config import Config
from compactor.money import TRANSITIONS_PER_CHILD, TRANSITIONS_PER_RUN
from compactor.prices import prices_for

# The dimension of all metrics of compactor_handlers/runtime.py.
_SERVICE = {"service": "s3-compactor"}
_HOUR = Duration.hours(1)
_DAY = Duration.days(1)

# Prices of us-east-1, whatever the stack's region: the estimate shows magnitude and trend, not the
# bill.
_PRICES = prices_for("us-east-1")
_GET, _PUT = _PRICES.of("s3.get"), _PRICES.of("s3.put")
_TRANSITION = _PRICES.of("states.transition")
# For an output: start, parts and completion of its upload, its commit and the commit's witness.
# For a partition: checkpoint and receipt, and the same number for its clean-up: record and receipt.
_PUTS_PER_OUTPUT, _PUTS_PER_PARTITION = 7, 2


class Metrics:
    """Daily sums of the handlers' metrics, and expressions over them."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def count(
        self, name: str, label: str | None = None, period: Duration = _DAY
    ) -> cloudwatch.Metric:
        """Return the sum of one of the handlers' metrics."""
        return cloudwatch.Metric(
            namespace=self._config.name,
            metric_name=name,
            dimensions_map=_SERVICE,
            statistic="Sum",
            period=period,
            label=label or name,
        )

    def of_stream(self, name: str, statistic: str, period: Duration) -> cloudwatch.Metric:
        """Return a metric of the deployment's only stream, which has the deployment's name."""
        return cloudwatch.Metric(
            namespace=self._config.name,
            metric_name=name,
            dimensions_map={**_SERVICE, "stream": self._config.name},
            statistic=statistic,
            period=period,
        )

    def of_tables(self, name: str, statistic: str) -> cloudwatch.MathExpression:
        """Return a metric of each table, one line per table, by a search in CloudWatch."""
        schema = f"{{{self._config.name},service,table}}"
        return cloudwatch.MathExpression(
            expression=f"SEARCH('{schema} MetricName=\"{name}\"', '{statistic}', 86400)",
            using_metrics={},
            label="",
            period=_DAY,
        )

    def freshness(self, percentile: int) -> cloudwatch.Metric:
        """Return the seconds from an object's event until its records are readable in an output."""
        return cloudwatch.Metric(
            namespace=self._config.name,
            metric_name="FreshnessSeconds",
            dimensions_map=_SERVICE,
            statistic=f"p{percentile}",
            period=_HOUR,
            label=f"p{percentile}",
        )

    def undimensioned(self, name: str, period: Duration) -> cloudwatch.Metric:
        """Return the sum of a metric filter's count."""
        return cloudwatch.Metric(
            namespace=self._config.name, metric_name=name, statistic="Sum", period=period
        )

    def compaction_ratio(self) -> cloudwatch.MathExpression:
        """Return the number of sources per output."""
        return cloudwatch.MathExpression(
            expression="objects_in / objects_out",
            using_metrics={
                "objects_in": self.count("ObjectsIn"),
                "objects_out": self.count("ObjectsOut"),
            },
            label="Objects in to one out",
            period=_DAY,
        )

    def seconds_per_partition(self) -> cloudwatch.MathExpression:
        """Return the seconds of work per partition."""
        return cloudwatch.MathExpression(
            expression="seconds / partitions",
            using_metrics={
                "seconds": self.count("Seconds"),
                "partitions": self.count("WorkItems"),
            },
            label="Seconds to one partition",
            period=_DAY,
        )

    def cost(
        self, machine: sfn.StateMachine, functions: Mapping[str, lambda_.Function]
    ) -> cloudwatch.MathExpression:
        """Return the dollars per run: Lambda, S3 requests, transitions, Spark's reported use."""
        metrics: dict[str, cloudwatch.IMetric] = {
            "objects_in": self.count("ObjectsIn"),
            "objects_out": self.count("ObjectsOut"),
            "partitions": self.count("WorkItems"),
            "clean_ups": self.count("DuePartitions"),
            "spark_vcpu_hours": self.count("SparkVcpuHours"),
            "spark_gb_hours": self.count("SparkGbHours"),
            "runs": machine.metric_started(period=_DAY),
        }
        terms = [
            f"FILL(objects_in, 0) * {_GET:.7f}",
            f"FILL(objects_out, 0) * {_PUTS_PER_OUTPUT * _PUT:.6f}",
            f"(FILL(partitions, 0) + FILL(clean_ups, 0)) * {self._partition_price():.6f}",
            f"runs * {TRANSITIONS_PER_RUN * _TRANSITION:.6f}",
            f"FILL(spark_vcpu_hours, 0) * {self._spark_price('vcpu_hour'):.6f}",
            f"FILL(spark_gb_hours, 0) * {self._spark_price('gb_hour'):.7f}",
        ]
        for name, function in functions.items():
            metrics[f"ms_{name}"] = function.metric_duration(statistic="Sum", period=_DAY)
            terms.append(f"FILL(ms_{name}, 0) * {self._millisecond_price(function):.13f}")
        return cloudwatch.MathExpression(
            expression=f"({' + '.join(terms)}) / runs",
            using_metrics=metrics,
            label="Dollars to one run, about",
            period=_DAY,
        )

    @staticmethod
    def _partition_price() -> float:
        return _PUTS_PER_PARTITION * _PUT + TRANSITIONS_PER_CHILD * _TRANSITION

    def _spark_price(self, unit: str) -> float:
        """Of EMR Serverless. On EC2 clusters the same hours cost something else."""
        return _PRICES.of(f"emr_serverless.{unit}.{self._config.architecture}")

    def _millisecond_price(self, function: lambda_.Function) -> float:
        resource = function.node.default_child
        assert isinstance(resource, lambda_.CfnFunction)  # noqa: S101 - what an L2 function is
        memory_mb = resource.memory_size or 128
        return _PRICES.of(f"lambda.gb_second.{self._config.architecture}") * memory_mb / 1024 / 1000


def run_duration(machine: sfn.StateMachine) -> list[cloudwatch.IMetric]:
    """Return the seconds of a run: each day's average, and the average of all shown runs so far."""
    days = {
        "total": machine.metric_time(statistic="Sum", period=_DAY),
        "runs": machine.metric_time(statistic="SampleCount", period=_DAY),
    }
    return [
        cloudwatch.MathExpression(
            expression="total / runs / 1000", using_metrics=days, label="Of the day", period=_DAY
        ),
        cloudwatch.MathExpression(
            expression="RUNNING_SUM(total) / RUNNING_SUM(runs) / 1000",
            using_metrics=days,
            label="Rolling average",
            period=_DAY,
        ),
    ]
