"""AWS::Scheduler::Schedule and AWS::Scheduler::ScheduleGroup."""
from moto.scheduler.exceptions import ScheduleGroupNotFound, ScheduleNotFound
from moto.scheduler.models import scheduler_backends
from resource_type import resource_type


def put(name, given, account, region, is_new):
    backend = scheduler_backends[account][region]
    settings = {
        "name": name,
        "group_name": given.get("GroupName"),
        "description": given.get("Description"),
        "schedule_expression": given["ScheduleExpression"],
        "schedule_expression_timezone": given.get("ScheduleExpressionTimezone"),
        "flexible_time_window": given["FlexibleTimeWindow"],
        "start_date": given.get("StartDate"),
        "end_date": given.get("EndDate"),
        "state": given.get("State", "ENABLED"),
        "kms_key_arn": given.get("KmsKeyArn"),
        # A copy: moto adds to it.
        "target": dict(given["Target"]),
    }
    if is_new:
        backend.create_schedule(action_after_completion=None, **settings)
    else:
        backend.update_schedule(**settings)


def remove(name, given, account, region):
    try:
        scheduler_backends[account][region].delete_schedule(given.get("GroupName"), name)
    except (ScheduleNotFound, ScheduleGroupNotFound):
        pass  # gone with its group, or by hand


def arn(name, given, account, region):
    return f"arn:aws:scheduler:{region}:{account}:schedule/{given.get('GroupName') or 'default'}/{name}"


def put_group(name, given, account, region, is_new):
    if is_new:
        scheduler_backends[account][region].create_schedule_group(name, given.get("Tags", []))


def remove_group(name, _given, account, region):
    scheduler_backends[account][region].schedule_groups.pop(name, None)


def group_arn(name, _given, account, region):
    return f"arn:aws:scheduler:{region}:{account}:schedule-group/{name}"


schedule = resource_type("AWS::Scheduler::Schedule", "Name", put, remove, arn)
group = resource_type("AWS::Scheduler::ScheduleGroup", "Name", put_group, remove_group, group_arn)
