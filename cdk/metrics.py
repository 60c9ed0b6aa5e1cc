"""The numbers that dashboard and alarms look at."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn

from cdk.config import Config
from compactor.money.running import TRANSITIONS_PER_CHILD, TRANSITIONS_PER_RUN
from compactor.prices import prices_for

# The dimension that compactor_handlers/runtime.py gives all its metrics.
_SERVICE = {"service": "s3-compactor"}
_HOUR = Duration.hours(1)
_DAY = Duration.days(1)

# Of us-east-1, wherever the stack is. The estimate is to show its order and its course, not to be
# the bill.
_PRICES = prices_for("us-east-1")
_GET, _PUT = _PRICES.of("s3.get"), _PRICES.of("s3.put")
_TRANSITION = _PRICES.of("states.transition")
# On EMR Serverless. On a cluster of EC2 the same hours are counted, and cost otherwise.
_SPARK_VCPU_HOUR = _PRICES.of("emr_serverless.vcpu_hour")
_SPARK_GB_HOUR = _PRICES.of("emr_serverless.gb_hour")
# An output: its upload's start, parts and end, its commit and the
# commit's witness. A partition: checkpoint and receipt;
# its clean-up: record and receipt.
_PUTS_PER_OUTPUT, _PUTS_PER_PARTITION = 7, 2


class Metrics:
    """Sums a day of what the handlers count, and what is made of them."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def count(
        self, name: str, label: str | None = None, period: Duration = _DAY
    ) -> cloudwatch.Metric:
        """The sum of one of the handlers' metrics."""
        return cloudwatch.Metric(
            namespace=self._config.name,
            metric_name=name,
            dimensions_map=_SERVICE,
            statistic="Sum",
            period=period,
            label=label or name,
        )

    def of_stream(self, name: str, statistic: str, period: Duration) -> cloudwatch.Metric:
        """What the handlers count for each stream; a deployment has one, of its own name."""
        return cloudwatch.Metric(
            namespace=self._config.name,
            metric_name=name,
            dimensions_map={**_SERVICE, "stream": self._config.name},
            statistic=statistic,
            period=period,
        )

    def of_tables(self, name: str, statistic: str) -> cloudwatch.MathExpression:
        """What the handlers count for each table, a line each; CloudWatch finds them by name."""
        schema = f"{{{self._config.name},service,table}}"
        return cloudwatch.MathExpression(
            expression=f"SEARCH('{schema} MetricName=\"{name}\"', '{statistic}', 86400)",
            using_metrics={},
            label="",
            period=_DAY,
        )

    def freshness(self, percentile: int) -> cloudwatch.Metric:
        """Seconds from the event of an object until its records are readable in an output."""
        return cloudwatch.Metric(
            namespace=self._config.name,
            metric_name="FreshnessSeconds",
            dimensions_map=_SERVICE,
            statistic=f"p{percentile}",
            period=_HOUR,
            label=f"p{percentile}",
        )

    def undimensioned(self, name: str, period: Duration) -> cloudwatch.Metric:
        """The sum of what a metric filter counts."""
        return cloudwatch.Metric(
            namespace=self._config.name, metric_name=name, statistic="Sum", period=period
        )

    def compaction_ratio(self) -> cloudwatch.MathExpression:
        """Objects in to one object out."""
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
        """Seconds of work to one partition."""
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
        """Dollars to one run: Lambda, S3 requests, transitions, and what Spark says it used."""
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
            f"FILL(spark_vcpu_hours, 0) * {_SPARK_VCPU_HOUR:.6f}",
            f"FILL(spark_gb_hours, 0) * {_SPARK_GB_HOUR:.7f}",
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

    def _millisecond_price(self, function: lambda_.Function) -> float:
        resource = function.node.default_child
        assert isinstance(resource, lambda_.CfnFunction)  # noqa: S101 - what an L2 function is
        memory_mb = resource.memory_size or 128
        return _PRICES.of(f"lambda.gb_second.{self._config.architecture}") * memory_mb / 1024 / 1000


def run_duration(machine: sfn.StateMachine) -> list[cloudwatch.IMetric]:
    """Seconds of a run: by day, and the average of all runs shown up to that day."""
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
