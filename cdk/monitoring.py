"""Operation: one dashboard for each stack, its alarms, and the topic that they notify."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from aws_cdk import Aws, Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from cdk.config import Deployment
from cdk.events import Events
from cdk.functions import Functions
from cdk.standalone import StandaloneConstruct

_SOON, _HOUR, _DAY = Duration.minutes(5), Duration.hours(1), Duration.days(1)
# The dimension of all metrics of the handlers.
_SERVICE = {"service": "s3-compactor"}
# CloudWatch alarms look back a week at most.
_MOST_ALARM_HOURS, _HOURS_OF_DAILY = 168, 48
_MINUTES = {"minute": 1, "hour": 60, "day": 1440}
# Longer than all attempts to deliver a message take.
_LONG_SECONDS = 3_600
_MISSING = cloudwatch.TreatMissingData

# What an alarm says, by its name; docs/operations.md has a row for each.
_SAYS: Mapping[str, str] = {
    "Run": "A run failed: compactor runs show says why; start it again with the same input.",
    "Tables": "A maintenance run failed: its report says which table and why.",
    "FailedStart": "The schedule could not start a run; the messages in the queue say why.",
    "IntegrityError": "The state contradicts its log, or a table itself: run compactor verify.",
    "Quarantine": "Sources could not be compacted and were left alone; the report names each.",
    "UnsafeCommit": "Clean-up kept sources whose output is missing or differs: compactor verify.",
    "RefusedSources": "S3 did not delete what clean-up asked it to; the report has its reason.",
    "Unshown": "Partitions of the readers' table are out of date; compactor runs show says why.",
    "RegisterErrors": "The function that registers events failed; its log says why.",
    "EventsWaiting": "An event waits in the queue for an hour. May the function register run?",
    "DeadLetters": "Events could not be registered. Fix the cause, then redrive the queue.",
    "LostEvents": "A reconcile registered objects that no event named. Are notifications on?",
    "OldestPending": "An object waits for too long, or the sweep does not run: see compactor runs.",
}


class Monitoring(Construct):
    """A dashboard with the name of the stack, alarms, and the SNS topic that they notify."""

    def __init__(self, scope: Construct, name: str, email: str | None) -> None:
        super().__init__(scope, "Monitoring")
        self._name = name
        self._dashboard = cloudwatch.Dashboard(
            self, "Dashboard", dashboard_name=name, default_interval=Duration.days(30)
        )
        self._topic = sns.Topic(self, "Topic", enforce_ssl=True)
        # Any topic policy replaces the default one, which lets alarms publish; so ours must do so.
        self._topic.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[self._topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
            )
        )
        if email is not None:
            self._topic.add_subscription(subscriptions.EmailSubscription(email))

    def watch_workflow(
        self,
        machine: sfn.StateMachine,
        functions: Functions,
        deployment: Deployment,
        failed: sqs.Queue | None,
    ) -> None:
        """Watch the runs of the state machine."""
        self._alarm_of_machine("Run", machine)
        self._watch_schedule(machine.metric_started, deployment.schedule, failed)
        self._watch_compaction(functions, deployment)
        self._show(
            _graph(
                "Runs",
                machine.metric_started(period=_DAY, label="started"),
                machine.metric_succeeded(period=_DAY, label="succeeded"),
                machine.metric_failed(period=_DAY, label="failed"),
            ),
            _graph("Milliseconds of a run", machine.metric_time(period=_DAY, statistic="Average")),
        )
        self._show_work(functions, deployment)

    def watch_standalone(
        self, alone: StandaloneConstruct, functions: Functions, deployment: Deployment
    ) -> None:
        """Watch the standalone function."""
        function = alone.function
        self._alarm("RunFailed", function.metric_errors(period=_SOON), says="Run")
        self._watch_schedule(function.metric_invocations, deployment.schedule, alone.failed)
        self._watch_compaction(functions, deployment)
        self._show(
            _graph(
                "Runs",
                function.metric_invocations(period=_DAY, label="started"),
                function.metric_errors(period=_DAY, label="failed"),
            ),
            _graph("Milliseconds of a run", function.metric_duration(period=_DAY)),
        )
        self._show_work(functions, deployment)

    def watch_tables(
        self,
        machine: sfn.StateMachine,
        functions: Functions,
        deployment: Deployment,
        failed: sqs.Queue | None,
    ) -> None:
        """Watch the maintenance of tables."""
        schedule = deployment.maintenance.schedule if deployment.maintenance else None
        self._alarm_of_machine("Tables", machine)
        self._watch_schedule(machine.metric_started, schedule, failed, name="NoTablesRun")
        self._watch_integrity(functions.log_groups)
        namespace = deployment.name
        self._show(
            _graph(
                "Runs and tables",
                machine.metric_started(period=_DAY, label="runs"),
                machine.metric_failed(period=_DAY, label="failed runs"),
                _count(namespace, "MaintainedTables"),
                _count(namespace, "FailedTables"),
            ),
            _graph(
                "Files",
                *(_count(namespace, one) for one in ("MaintainedFiles", "WrittenFiles", "GaveWay")),
            ),
            _graph("Dollars a day, about", _count(namespace, "MaintenanceDollars")),
        )
        each = ("TableFiles", "TableBacklog", "TableSeconds")
        self._show(*(_graph(f"{one} of each table", _search(namespace, one)) for one in each))
        self._show(*_function_graphs(functions))

    def watch_events(self, events: Events, functions: Functions, deployment: Deployment) -> None:
        """Watch events and pending objects."""
        name, about = deployment.name, deployment.events
        assert about is not None  # noqa: S101 - made for deployments with events
        stream = {**_SERVICE, "stream": name}
        register = functions.by_name["register"]
        self._alarm("RegisterErrors", register.metric_errors(period=_SOON))
        age = events.queue.metric_approximate_age_of_oldest_message(statistic="Maximum")
        self._alarm("EventsWaiting", age, threshold=_LONG_SECONDS)
        dead = events.dead_letters.metric_approximate_number_of_messages_visible
        self._alarm("DeadLetters", dead(statistic="Maximum"))
        self._alarm("LostEvents", _count(name, "ReconciledObjects", _HOUR, stream))
        often = Duration.minutes(about.sweep_minutes)
        self._alarm(
            "OldestPending",
            _count(name, "OldestPendingSeconds", often, stream, "Maximum"),
            threshold=2 * about.seconds + 60 * about.sweep_minutes,
            periods=3,
            missing=_MISSING.BREACHING,
        )
        arrived = ("EventsRegistered", "EventsKnown", "EventsWithdrawn", "MessagesRefused")
        freshness = [
            _count(name, "FreshnessSeconds", _HOUR, statistic=one) for one in ("p50", "p99")
        ]
        self._show(
            _graph("Events an hour", *(_count(name, one, _HOUR) for one in arrived)),
            _graph("Objects that wait", _count(name, "PendingObjects", _HOUR, stream, "Maximum")),
            _graph("Seconds from arrival to queryable", *freshness),
        )

    def _watch_compaction(self, functions: Functions, deployment: Deployment) -> None:
        self._watch_integrity(functions.log_groups)
        watched = {"Quarantine": "QuarantinedObjects"}
        if deployment.deletes:
            watched |= {"UnsafeCommit": "UnsafeCommits", "RefusedSources": "RefusedSources"}
        if deployment.run.reader_table is not None:
            watched["Unshown"] = "UnshownPartitions"
        for name, metric in watched.items():
            self._alarm(name, _count(deployment.name, metric, _HOUR))

    def _watch_integrity(self, log_groups: Mapping[str, logs.LogGroup]) -> None:
        """Raise an alarm when a function logs an IntegrityError."""
        for name, log in log_groups.items():
            logs.MetricFilter(
                self,
                f"IntegrityIn{name}",
                log_group=log,
                metric_namespace=self._name,
                metric_name="IntegrityErrors",
                filter_pattern=logs.FilterPattern.any_term("IntegrityError"),
            )
        self._alarm("IntegrityError", _count(self._name, "IntegrityErrors", _SOON, {}))

    def _watch_schedule(
        self,
        started: Callable[..., cloudwatch.Metric],
        schedule: str | None,
        failed: sqs.Queue | None,
        name: str = "NoRun",
    ) -> None:
        """Raise an alarm for failed starts, and for a schedule that started nothing for too long.

        The metric of starts only has values when runs start, and they are never below one. So the
        alarm has no data until the first run, for example on the day on which the schedule is
        deployed, and notifies when the data stops after that: an alarm starts as INSUFFICIENT_DATA,
        and acts only when its state changes ("Using Amazon CloudWatch alarms").
        """
        if failed is not None:
            waiting = failed.metric_approximate_number_of_messages_visible(period=_SOON)
            self._alarm("FailedStart", waiting)
        hours = None if schedule is None else alarm_hours(schedule)
        if hours is None:
            return
        alarm = self._alarm(
            name,
            started(period=_HOUR, statistic="Sum"),
            description=f"Nothing started for {hours} hours: is its schedule there?",
            threshold=1,
            below=True,
            periods=hours,
            missing=_MISSING.MISSING,
        )
        alarm.add_insufficient_data_action(actions.SnsAction(self._topic))

    def _alarm_of_machine(self, name: str, machine: sfn.StateMachine) -> None:
        """Add an alarm for each way in which a run does not succeed.

        One alarm over their sum would depend on how CloudWatch evaluates a metric that was never
        published; its manual only describes missing *values*.
        """
        for end, metric in (
            ("Failed", machine.metric_failed),
            ("TimedOut", machine.metric_timed_out),
            ("Aborted", machine.metric_aborted),
        ):
            self._alarm(f"{name}{end}", metric(period=_SOON, statistic="Sum"), says=name)

    def _alarm(
        self,
        name: str,
        metric: cloudwatch.IMetric,
        *,
        says: str = "",
        description: str = "",
        threshold: int = 0,
        below: bool = False,
        periods: int = 1,
        missing: cloudwatch.TreatMissingData = _MISSING.NOT_BREACHING,
    ) -> cloudwatch.Alarm:
        kinds = cloudwatch.ComparisonOperator
        kind = kinds.LESS_THAN_THRESHOLD if below else kinds.GREATER_THAN_THRESHOLD
        alarm = cloudwatch.Alarm(
            self,
            name,
            metric=metric,
            alarm_name=f"{self._name}-{name}",
            alarm_description=description or _SAYS[says or name],
            comparison_operator=kind,
            threshold=threshold,
            evaluation_periods=periods,
            datapoints_to_alarm=periods if below else None,
            treat_missing_data=missing,
        )
        alarm.add_alarm_action(actions.SnsAction(self._topic))
        return alarm

    def _show_work(self, functions: Functions, deployment: Deployment) -> None:
        name = deployment.name
        groups = {
            "Partitions": ("WorkItems", "OversizedPartitions", "DuePartitions"),
            "Objects": ("ObjectsIn", "ObjectsOut"),
            "Bytes": ("BytesIn", "BytesOut"),
            "What needs a look": (
                *("QuarantinedObjects", "Conflicts"),
                *("UnsafeCommits", "RefusedSources", "DeletedSources"),
            ),
        }
        if deployment.run.table is not None:
            groups["Table"] = ("PublishedOutputs", "PublishedRows", "TableConflicts")
        if deployment.run.reader_table is not None:
            groups["Readers' table"] = ("SwitchedPartitions", "UnshownPartitions")
        graphs: list[cloudwatch.IWidget] = [
            _graph(title, *(_count(name, one) for one in metrics))
            for title, metrics in groups.items()
        ]
        graphs += _function_graphs(functions)
        for first in range(0, len(graphs), 3):
            self._show(*graphs[first : first + 3])

    def _show(self, *widgets: cloudwatch.IWidget) -> None:
        self._dashboard.add_widgets(*widgets)


def alarm_hours(schedule: str) -> int | None:
    """Return after how many hours without a run the alarm of a schedule is raised.

    This is two periods of a ``rate(…)``, two days for a ``cron(…)`` that is daily or more often, a
    week for one by days of the week. None if runs are less than weekly: CloudWatch looks back no
    further.
    """
    rate = re.fullmatch(r"rate\((\d+) (minute|hour|day)s?\)", schedule)
    if rate is not None:
        minutes = int(rate[1]) * _MINUTES[rate[2]]
        hours = max(2, min(-(-2 * minutes // 60), _MOST_ALARM_HOURS))
        return None if minutes > _MOST_ALARM_HOURS * 60 else hours
    _, _, days, months, weekdays, years = schedule.removeprefix("cron(").rstrip(")").split()
    if (months, years) != ("*", "*") or days not in ("*", "?"):
        return None
    if weekdays in ("*", "?"):
        return _HOURS_OF_DAILY
    # 2#1 is the first Monday of a month, 6L its last Friday.
    return None if "#" in weekdays or "L" in weekdays else _MOST_ALARM_HOURS


def _count(
    namespace: str,
    name: str,
    period: Duration = _DAY,
    dimensions: Mapping[str, str] = _SERVICE,
    statistic: str = "Sum",
) -> cloudwatch.Metric:
    label = statistic if statistic.startswith("p") else name
    return cloudwatch.Metric(
        namespace=namespace,
        metric_name=name,
        dimensions_map=dict(dimensions) or None,
        statistic=statistic,
        period=period,
        label=label,
    )


def _search(namespace: str, name: str) -> cloudwatch.MathExpression:
    """Return a metric of each table, one line per table."""
    schema = f"{{{namespace},service,table}}"
    expression = f"SEARCH('{schema} MetricName=\"{name}\"', 'Maximum', 86400)"
    return cloudwatch.MathExpression(expression=expression, using_metrics={}, label="", period=_DAY)


def _function_graphs(functions: Functions) -> list[cloudwatch.IWidget]:
    each: list[tuple[str, lambda_.Function]] = [*functions.by_name.items()]
    errors = [one.metric_errors(period=_DAY, label=f"{name} errors") for name, one in each]
    throttles = [one.metric_throttles(period=_DAY, label=name) for name, one in each]
    longest = [
        one.metric_duration(period=_DAY, statistic="Maximum", label=name) for name, one in each
    ]
    return [
        _graph("Errors and throttles", *errors, *throttles),
        _graph("Longest call in milliseconds", *longest),
    ]


def _graph(title: str, *metrics: cloudwatch.IMetric) -> cloudwatch.GraphWidget:
    zero = cloudwatch.YAxisProps(min=0)
    left = list(metrics)
    return cloudwatch.GraphWidget(title=title, left=left, left_y_axis=zero, width=8, height=6)
