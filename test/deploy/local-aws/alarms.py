"""AWS::CloudWatch::Alarm."""
from moto.cloudwatch.models import Dimension, Metric, MetricDataQuery, MetricStat, cloudwatch_backends
from resource_type import resource_type


def number(value, kind):
    return None if value is None else kind(value)


def dimensions_of(properties):
    return [{"Name": each["Name"], "Value": str(each["Value"])} for each in properties.get("Dimensions", [])]


def query(each):
    stat = each.get("MetricStat")
    if stat:
        metric = stat["Metric"]
        stat = MetricStat(
            metric=Metric(
                metric_name=metric["MetricName"],
                namespace=metric["Namespace"],
                dimensions=[Dimension(name=one["Name"], value=one["Value"]) for one in dimensions_of(metric)],
            ),
            period=stat["Period"],
            stat=stat["Stat"],
            unit=stat.get("Unit"),
        )
    return MetricDataQuery(
        query_id=each["Id"],
        label=each.get("Label"),
        period=each.get("Period"),
        return_data=each.get("ReturnData", True),
        expression=each.get("Expression"),
        metric_stat=stat,
    )


def put(name, given, account, region, _is_new):
    cloudwatch_backends[account][region].put_metric_alarm(
        name=name,
        namespace=given.get("Namespace"),
        metric_name=given.get("MetricName"),
        metric_data_queries=[query(each) for each in given["Metrics"]] if given.get("Metrics") else None,
        comparison_operator=given["ComparisonOperator"],
        evaluation_periods=int(given["EvaluationPeriods"]),
        datapoints_to_alarm=number(given.get("DatapointsToAlarm"), int),
        period=number(given.get("Period"), int),
        threshold=number(given.get("Threshold"), float),
        statistic=given.get("Statistic"),
        extended_statistic=given.get("ExtendedStatistic"),
        description=given.get("AlarmDescription"),
        dimensions=dimensions_of(given),
        alarm_actions=given.get("AlarmActions", []),
        ok_actions=given.get("OKActions", []),
        insufficient_data_actions=given.get("InsufficientDataActions", []),
        unit=given.get("Unit"),
        actions_enabled=given.get("ActionsEnabled", True),
        treat_missing_data=given.get("TreatMissingData"),
        threshold_metric_id=given.get("ThresholdMetricId"),
        tags=given.get("Tags", []),
    )


def remove(name, _given, account, region):
    cloudwatch_backends[account][region].delete_alarms([name])


def arn(name, _given, account, region):
    return f"arn:aws:cloudwatch:{region}:{account}:alarm:{name}"


alarm = resource_type("AWS::CloudWatch::Alarm", "AlarmName", put, remove, arn)
