"""The dashboard, and the metrics that each mode's alarms watch."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from cdk.alarms import Alarms
from cdk.config import Config
from cdk.function_set import FunctionSet
from cdk.ingest import Ingest
from cdk.metrics import Metrics, run_duration

_SOON = Duration.minutes(5)
_HOUR = Duration.hours(1)
_DAY = Duration.days(1)
_WIDTH, _HEIGHT = 8, 6
# States of the definition that show the progress of the oversized branch.
_SPARK_STATES = (
    "PrepareSpark",
    "RunServerlessJob",
    "CreateCluster",
    "AddStep",
    "AddStepToCluster",
    "TerminateCluster",
    "SparkDone",
    "SparkFailed",
)


class Monitoring(Construct):
    """One dashboard with the name of the deployment, and the alarms.

    Args:
        scope: the stack.
        config: what is deployed.
        failed: the queue of failed starts.
    """

    def __init__(self, scope: Construct, config: Config, failed: sqs.Queue) -> None:
        super().__init__(scope, "Monitoring")
        self._metrics = Metrics(config)
        self._alarms = Alarms(self, config)
        self._alarms.add_failed_start(
            failed.metric_approximate_number_of_messages_visible(period=_SOON)
        )
        self._has_readers = config.run.reader_table is not None
        self._dashboard = cloudwatch.Dashboard(
            self, "Dashboard", dashboard_name=config.name, default_interval=Duration.days(30)
        )

    def watch_workflow(
        self, machine: sfn.StateMachine, log_group_name: str, functions: FunctionSet
    ) -> None:
        """Add widgets and alarms for the runs of the state machine."""
        self._watch_compaction(functions)
        self._alarms.add_failed(
            {
                "RunFailed": machine.metric_failed(period=_SOON, statistic="Sum"),
                "RunTimedOut": machine.metric_timed_out(period=_SOON, statistic="Sum"),
                "RunAborted": machine.metric_aborted(period=_SOON, statistic="Sum"),
            }
        )
        self._alarms.add_missed(machine.metric_started(period=_HOUR, statistic="Sum"))
        self._show(
            _graph(
                "Runs",
                machine.metric_started(period=_DAY, label="started"),
                machine.metric_succeeded(period=_DAY, label="succeeded"),
                machine.metric_failed(period=_DAY, label="failed"),
            ),
            _graph("Seconds of a run", *run_duration(machine)),
            _graph(
                "Cost of a run, without Spark",
                self._metrics.cost(machine, functions.by_name),
            ),
        )
        self._show_work()
        if "publish_table" in functions.by_name:
            self._show_table()
        self._show(
            *_function_graphs(functions),
            cloudwatch.LogQueryWidget(
                title="Oversized partitions: how often each step began",
                log_group_names=[log_group_name],
                query_string=_spark_query(),
                width=_WIDTH,
                height=_HEIGHT,
            ),
        )

    def watch_tables(self, machine: sfn.StateMachine, functions: FunctionSet) -> None:
        """Add widgets and alarms for the maintenance of tables."""
        self._alarms.add_integrity(functions.log_groups)
        self._alarms.add_tables(
            {
                "TablesFailed": machine.metric_failed(period=_SOON, statistic="Sum"),
                "TablesTimedOut": machine.metric_timed_out(period=_SOON, statistic="Sum"),
                "TablesAborted": machine.metric_aborted(period=_SOON, statistic="Sum"),
            },
            machine.metric_started(period=_HOUR, statistic="Sum"),
        )
        count, of_tables = self._metrics.count, self._metrics.of_tables
        self._show(
            _graph(
                "Maintenance: runs and tables",
                machine.metric_started(period=_DAY, label="runs"),
                machine.metric_failed(period=_DAY, label="failed runs"),
                count("MaintainedTables", "tables"),
                count("FailedTables", "failed tables"),
            ),
            _graph("Files of each table", of_tables("TableFiles", "Maximum")),
            _graph("Backlog: files of each table to rewrite", of_tables("TableBacklog", "Maximum")),
        )
        self._show(
            _graph(
                "Maintenance: files",
                count("MaintainedFiles", "replaced"),
                count("WrittenFiles", "written"),
                count("GaveWay", "partitions that gave way"),
            ),
            _graph("Maintenance: dollars a day, about", count("MaintenanceDollars", "dollars")),
            _graph("Seconds of each table", of_tables("TableSeconds", "Maximum")),
        )
        self._show(*_function_graphs(functions))

    def watch_ingest(self, ingest: Ingest, functions: FunctionSet) -> None:
        """Add widgets and alarms for events and pending objects."""
        register = functions.by_name["register"]
        self._alarms.add_ingest(
            register_errors=register.metric_errors(period=_SOON),
            waiting=ingest.queue.metric_approximate_age_of_oldest_message(
                period=_SOON, statistic="Maximum"
            ),
            dead_letters=ingest.dead_letters.metric_approximate_number_of_messages_visible(
                period=_SOON, statistic="Maximum"
            ),
        )
        count, of_stream = self._metrics.count, self._metrics.of_stream
        self._show(
            _graph(
                "Arrival: events an hour",
                count("EventsRegistered", "registered", _HOUR),
                count("EventsKnown", "known already", _HOUR),
                count("EventsWithdrawn", "withdrawn", _HOUR),
                count("MessagesRefused", "refused", _HOUR),
            ),
            _graph(
                "Backlog: objects that wait",
                of_stream("PendingObjects", "Maximum", _HOUR),
                ingest.queue.metric_approximate_number_of_messages_visible(
                    period=_HOUR, statistic="Maximum", label="events in the queue"
                ),
            ),
            _graph(
                "Freshness: seconds from arrival to queryable",
                self._metrics.freshness(50),
                self._metrics.freshness(99),
            ),
        )

    def watch_standalone(self, function: lambda_.Function, functions: FunctionSet) -> None:
        """Add widgets and alarms for the standalone function."""
        self._watch_compaction(functions)
        self._alarms.add_failed({"RunFailed": function.metric_errors(period=_SOON)})
        self._alarms.add_missed(function.metric_invocations(period=_HOUR, statistic="Sum"))
        self._show(
            _graph(
                "Runs",
                function.metric_invocations(period=_DAY, label="started"),
                function.metric_errors(period=_DAY, label="failed"),
            ),
            _graph("Milliseconds of a run", function.metric_duration(period=_DAY)),
        )
        self._show_work()
        self._show(*_function_graphs(functions))

    def _watch_compaction(self, functions: FunctionSet) -> None:
        self._alarms.add_compaction()
        self._alarms.add_integrity(functions.log_groups)
        if self._has_readers:
            self._alarms.add_readers()

    def _show_work(self) -> None:
        count = self._metrics.count
        self._show(
            _graph(
                "Partitions",
                count("WorkItems", "to Lambda"),
                count("OversizedPartitions"),
                count("RestingPartitions", "at rest"),
                count("DuePartitions", "to clean up"),
            ),
            _graph("Objects", count("ObjectsIn", "in"), count("ObjectsOut", "out")),
            _graph("Compaction ratio", self._metrics.compaction_ratio()),
        )
        self._show(
            _graph("Bytes", count("BytesIn", "in"), count("BytesOut", "out")),
            _graph("Seconds to one partition", self._metrics.seconds_per_partition()),
            _graph(
                "What needs a look",
                count("QuarantinedObjects"),
                count("Conflicts"),
                count("UnsafeCommits"),
                count("RefusedSources"),
                count("DeletedSources"),
            ),
        )

        if self._has_readers:
            self._show(
                _graph(
                    "Partitions of the readers' table",
                    count("SwitchedPartitions", "switched"),
                    count("UnshownPartitions", "not shown as they are"),
                )
            )

    def _show_table(self) -> None:
        count = self._metrics.count
        self._show(
            _graph("Outputs that came into the table", count("PublishedOutputs", "outputs")),
            _graph("Rows that came into the table", count("PublishedRows", "rows")),
            _graph("Commits of the table that were tried again", count("TableConflicts")),
        )

    def _show(self, *widgets: cloudwatch.IWidget) -> None:
        self._dashboard.add_widgets(*widgets)


def _function_graphs(functions: FunctionSet) -> list[cloudwatch.IWidget]:
    found = functions.by_name.items()
    return [
        _graph(
            "Errors and throttles",
            *(one.metric_errors(period=_DAY, label=f"{name} errors") for name, one in found),
            *(one.metric_throttles(period=_DAY, label=name) for name, one in found),
        ),
        _graph(
            "Longest call in milliseconds",
            *(
                one.metric_duration(period=_DAY, statistic="Maximum", label=name)
                for name, one in found
            ),
        ),
    ]


def _spark_query() -> str:
    states = ", ".join(f'"{state}"' for state in _SPARK_STATES)
    return (
        f"filter type like /StateEntered/ and details.name in [{states}]"
        " | stats count() as times by details.name as step | sort step"
    )


def _graph(title: str, *metrics: cloudwatch.IMetric) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(
        title=title,
        left=list(metrics),
        left_y_axis=cloudwatch.YAxisProps(min=0),
        width=_WIDTH,
        height=_HEIGHT,
    )
