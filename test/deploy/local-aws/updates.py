"""What CloudFormation keeps and changes: retained resources, and log groups, which moto forgets when they change. And it reads
templates quickly."""
import json

import yaml
from moto.cloudformation import models
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

# cfn-lint takes seconds, and its advice isn't CloudFormation's refusal; templates have a test of their own for it.
models.validate_template_cfn_lint = lambda _template: []

load_yaml = yaml.load


def load(text, Loader):
    """JSON, which the CLI sends, is YAML too; read as such it takes a second for each look at a template."""
    return json.loads(text) if isinstance(text, str) and text.startswith("{") else load_yaml(text, Loader=Loader)


yaml.load = load
