"""What CloudFormation keeps and changes: retained resources, and log groups, which moto forgets when they change."""
from moto.cloudformation.parsing import ResourceMap
from moto.logs.models import LogGroup

delete_plainly = ResourceMap._delete_resource


def delete_unless_retained(self, parsed_resource, resource_json):
    if resource_json.get("DeletionPolicy") not in ("Retain", "RetainExceptOnCreate"):
        delete_plainly(self, parsed_resource, resource_json)


ResourceMap._delete_resource = delete_unless_retained


def update_log_group(_cls, original_resource, new_resource_name, cloudformation_json, account_id, region_name):
    original_resource.retention_in_days = cloudformation_json["Properties"].get("RetentionInDays")
    return original_resource


LogGroup.update_from_cloudformation_json = classmethod(update_log_group)
