"""A CloudFormation resource type that moto lacks: a name, and what is done when one is made, changed or removed.

moto finds a type by looking at the direct subclasses of CloudFormationModel, and takes the service from the module's name
("moto.SERVICE.models"). Each type is therefore made here, from functions.
"""
from moto.core.common_models import CloudFormationModel


def resource_type(cfn_type, name_property, put, remove, arn):
    """put(name, properties, account, region, is_new), remove(name, properties, account, region), arn(name, properties,
    account, region): the functions behind the type `cfn_type`, whose name is its property `name_property`."""

    class Resource(CloudFormationModel):
        __module__ = "moto.local.models"

        def __init__(self, name, properties, account, region):
            self.name, self.properties = name, properties
            self.arn = arn(name, properties, account, region)

        @property
        def physical_resource_id(self):
            return self.name

        def is_created(self):
            return True

        @staticmethod
        def cloudformation_name_type():
            return name_property

        @staticmethod
        def cloudformation_type():
            return cfn_type

        @classmethod
        def has_cfn_attr(cls, attr):
            return attr == "Arn"

        def get_cfn_attribute(self, _attr):
            return self.arn

        @classmethod
        def create_from_cloudformation_json(cls, resource_name, cloudformation_json, account_id, region_name, **_kwargs):
            properties = cloudformation_json.get("Properties", {})
            put(resource_name, properties, account_id, region_name, True)
            return cls(resource_name, properties, account_id, region_name)

        @classmethod
        def update_from_cloudformation_json(
            cls, original_resource, new_resource_name, cloudformation_json, account_id, region_name
        ):
            properties = cloudformation_json.get("Properties", {})
            old = original_resource
            # Without a name in the template the resource keeps the one that was made up for it.
            name = properties.get(name_property) or (old.name if old else new_resource_name)
            if old and name != old.name:
                remove(old.name, old.properties, account_id, region_name)
            put(name, properties, account_id, region_name, not old or name != old.name)
            return cls(name, properties, account_id, region_name)

        def delete(self, account_id, region_name):
            # With the properties as they were worked out; the template's still have their references.
            remove(self.name, self.properties, account_id, region_name)

    Resource.__name__ = cfn_type.replace("::", "")
    return Resource


def nothing(*_):
    """For types that only say who may do what, which isn't checked here."""


# moto holds its subclasses weakly; these keep them.
policies = [
    resource_type(cfn_type, "", nothing, nothing, lambda name, *_: name)
    for cfn_type in ("AWS::S3::BucketPolicy", "AWS::SQS::QueuePolicy", "AWS::SNS::TopicPolicy")
]
