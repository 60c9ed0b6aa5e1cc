"""The alarms, and the topic they notify."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Aws, Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from cdk.config import Config
from cdk.metrics import Metrics
from cdk.readers import alarm_hours

_SOON = Duration.minutes(5)
_HOUR = Duration.hours(1)
# Longer than all attempts to deliver a message take.
_LONG_SECONDS = 3_600
_INTEGRITY = (
    "Something stored contradicts the commit log, and nothing was touched. Run compactor"
    " verify, and let no clean-up run before you know why."
)
_INTEGRITY_ALONE = (
    "A document of a run, or a table's metadata, is damaged, and the table was left alone:"
    " the function's log says which."
)
_ABOVE = cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD


class Alarms(Construct):
    """The alarms and the SNS topic they notify; each alarm's description says what to do.

    Attributes:
        topic: receives the alarms.
    """

    def __init__(self, scope: Construct, config: Config) -> None:
        super().__init__(scope, "Alarms")
        self._config, self._metrics = config, Metrics(config)
        self.topic = sns.Topic(self, "Topic", enforce_ssl=True)
        # Any topic policy replaces the default one, which lets alarms publish; so ours must do so.
        self.topic.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[self.topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
            )
        )
        if config.alarm_email is not None:
            self.topic.add_subscription(subscriptions.EmailSubscription(config.alarm_email))

    def add_failed(self, how: Mapping[str, cloudwatch.IMetric]) -> None:
        """Add alarms for runs that did not succeed, one for each metric.

        One alarm over their sum would depend on how CloudWatch evaluates a metric that was never
        published; its manual only describes missing *values*.
        """
        for name, metric in how.items():
            self._add(
                name,
                metric,
                "A run failed. What it committed stands: read its cause (compactor status), then"
                " start it again with the same input.",
            )

    def add_missed(self, started: cloudwatch.Metric) -> None:
        """Add an alarm for a schedule that has started no run for too long.

        The metric only has values when runs start, and they are never below one. So the alarm has
        no data until the first run, for example on the day on which the schedule is deployed, and
        notifies when the data stops after that: an alarm starts as INSUFFICIENT_DATA, and acts
        only when its state changes ("Using Amazon CloudWatch alarms").
        """
        self._add_seldom("NoRun", "run", started, self._config.schedule)

    def add_tables(self, how: Mapping[str, cloudwatch.IMetric], started: cloudwatch.Metric) -> None:
        """Add alarms for maintenance runs that did not succeed, or did not start on schedule.

        They work as those of :meth:`add_failed` and :meth:`add_missed` do for compaction.
        """
        for name, metric in how.items():
            self._add(
                name,
                metric,
                "A maintenance run failed: compactor tables status says which table and why. What"
                " was done to the others stands; start it again for the rest.",
            )
        self._add_seldom(
            "NoTablesRun", "maintenance run", started, self._config.maintenance_schedule
        )

    def add_readers(self) -> None:
        """Add an alarm for partitions of the readers' table that are out of date."""
        self._add(
            "Unshown",
            self._metrics.count("UnshownPartitions", period=_HOUR),
            "Partitions of the readers' table do not show what is there: nothing is doubled, late"
            " records are not seen yet, and clean-up waits. compactor report says why; compactor"
            " table refresh, or the next run over them, shows them.",
        )

    def add_ingest(
        self,
        register_errors: cloudwatch.IMetric,
        waiting: cloudwatch.IMetric,
        dead_letters: cloudwatch.IMetric,
    ) -> None:
        """Add alarms for events that are not registered, or not compacted in time.

        Args:
            register_errors: errors of the function ``register``.
            waiting: age in seconds of the oldest message in the queue.
            dead_letters: the number of dead letters.
        """
        self._add(
            "RegisterErrors",
            register_errors,
            "The function that registers events failed. Its messages are tried again and become"
            " dead letters at last; its log says why.",
        )
        self._add(
            "EventsWaiting",
            waiting,
            f"An event waits in the queue for more than {_LONG_SECONDS // 60} minutes. Does the"
            " function register run, and may it?",
            threshold=_LONG_SECONDS,
        )
        self._add(
            "DeadLetters",
            dead_letters,
            "Events could not be registered. Fix the cause, then redrive the queue (aws sqs"
            " start-message-move-task). Until then a reconcile finds their objects.",
        )
        self._add(
            "LostEvents",
            self._metrics.of_stream("ReconciledObjects", "Sum", _HOUR),
            "A reconcile found objects that no event named; they are registered now. Once: S3"
            " lost one. Again and again: are the bucket's notifications to EventBridge on?",
        )
        self._add_oldest()

    def _add_oldest(self) -> None:
        longest = 2 * self._config.events_seconds + 60 * self._config.sweep_minutes
        self._add(
            "OldestPending",
            self._metrics.of_stream(
                "OldestPendingSeconds", "Maximum", Duration.minutes(self._config.sweep_minutes)
            ),
            f"An object waits for more than {longest:,} seconds to be compacted, or the sweep,"
            " which would say so, does not run. compactor status: did runs fail?",
            threshold=longest,
            periods=3,
            missing=cloudwatch.TreatMissingData.BREACHING,
        )

    def add_failed_start(self, waiting: cloudwatch.IMetric) -> None:
        """Add an alarm for scheduled starts that failed."""
        self._add(
            "FailedStart",
            waiting,
            "The schedule could not start a run; the messages in the queue say why.",
        )

    def add_integrity(self, log_groups: Mapping[str, logs.LogGroup]) -> None:
        """Add an alarm for functions that log an IntegrityError."""
        for name, log in log_groups.items():
            logs.MetricFilter(
                self,
                f"IntegrityIn{name}",
                log_group=log,
                metric_namespace=self._config.name,
                metric_name="IntegrityErrors",
                filter_pattern=logs.FilterPattern.any_term("IntegrityError"),
            )
        # The functions of compaction and of maintenance share one alarm.
        if self.node.try_find_child("IntegrityError") is None:
            self._add(
                "IntegrityError",
                self._metrics.undimensioned("IntegrityErrors", _SOON),
                _INTEGRITY_ALONE if self._config.maintenance_alone else _INTEGRITY,
            )

    def add_compaction(self) -> None:
        """Add the alarms of compaction in any mode: quarantine, and sources that clean-up kept."""
        self._add(
            "Quarantine",
            self._metrics.count("QuarantinedObjects", period=_HOUR),
            "Sources could not be compacted and were left alone. The report names each with its"
            " reason; retry_quarantined tries them again.",
        )
        self._add(
            "UnsafeCommit",
            self._metrics.count("UnsafeCommits", period=_HOUR),
            "Clean-up kept the sources of a commit whose output is missing or differs. Run"
            " compactor verify.",
        )
        self._add(
            "RefusedSources",
            self._metrics.count("RefusedSources", period=_HOUR),
            "S3 did not delete sources that clean-up asked it to; all others are gone. The report"
            " names them with S3's reason, often a policy or a lock of the source bucket; the next"
            " run tries again.",
        )

    def _add_seldom(
        self, name: str, what: str, started: cloudwatch.Metric, schedule: str | None
    ) -> None:
        """Add an alarm on a metric that only has values when something starts."""
        hours = None if schedule is None else alarm_hours(schedule)
        if hours is None:
            return
        alarm = started.create_alarm(
            self,
            name,
            alarm_name=f"{self._config.name}-{name}",
            alarm_description=(
                f"No {what} started for {hours} hours. Is its schedule there, and does the queue of"
                " failed starts say why?"
            ),
            comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
            threshold=1,
            evaluation_periods=hours,
            datapoints_to_alarm=hours,
            treat_missing_data=cloudwatch.TreatMissingData.MISSING,
        )
        alarm.add_alarm_action(actions.SnsAction(self.topic))
        alarm.add_insufficient_data_action(actions.SnsAction(self.topic))

    def _add(
        self,
        name: str,
        metric: cloudwatch.IMetric,
        description: str,
        *,
        threshold: int = 0,
        periods: int = 1,
        missing: cloudwatch.TreatMissingData = cloudwatch.TreatMissingData.NOT_BREACHING,
    ) -> None:
        alarm = cloudwatch.Alarm(
            self,
            name,
            metric=metric,
            alarm_name=f"{self._config.name}-{name}",
            alarm_description=description,
            comparison_operator=_ABOVE,
            threshold=threshold,
            evaluation_periods=periods,
            treat_missing_data=missing,
        )
        alarm.add_alarm_action(actions.SnsAction(self.topic))
