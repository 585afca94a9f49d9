"""DynamoDB: tables' further settings from CloudFormation, and requests one after the other."""
import threading

from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.table import Table
from moto.dynamodb.responses import DynamoHandler


def set_further(table, properties, account, region):
    backend = dynamodb_backends[account][region]
    if properties.get("TimeToLiveSpecification"):
        backend.update_time_to_live(table.name, properties["TimeToLiveSpecification"])
    if properties.get("PointInTimeRecoverySpecification"):
        backend.update_continuous_backups(table.name, properties["PointInTimeRecoverySpecification"])
    table.deletion_protection_enabled = properties.get("DeletionProtectionEnabled", False)


create_plainly = Table.create_from_cloudformation_json.__func__


def create(cls, resource_name, cloudformation_json, account_id, region_name, **kwargs):
    table = create_plainly(cls, resource_name, cloudformation_json, account_id, region_name, **kwargs)
    set_further(table, cloudformation_json["Properties"], account_id, region_name)
    return table


def update(_cls, original_resource, new_resource_name, cloudformation_json, account_id, region_name):
    set_further(original_resource, cloudformation_json["Properties"], account_id, region_name)
    return original_resource


Table.create_from_cloudformation_json = classmethod(create)
Table.update_from_cloudformation_json = classmethod(update)

one_at_a_time = threading.RLock()
answer = DynamoHandler.call_action


def call_action(self):
    with one_at_a_time:
        return answer(self)


DynamoHandler.call_action = call_action
