"""Lambda: functions that run, their asynchronous invocations, and AWS::Lambda::EventInvokeConfig."""
import atexit
import base64
import io
import json
import os
import shutil
import subprocess
import tempfile
import threading
import uuid
import zipfile

from moto.awslambda.models import EventInvokeConfig, LambdaBackend, LambdaFunction, lambda_backends
from moto.core import responses
from moto.sqs.models import sqs_backends
from resource_type import resource_type

endpoint = ""
node = "node"
runner = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lambda-runner.mjs")

folder = tempfile.mkdtemp(prefix="cronfence-lambda-")
# What Lambda's runtime brings along: https://docs.aws.amazon.com/lambda/latest/dg/lambda-nodejs.html
if "RUNTIME_SDK" in os.environ:
    os.mkdir(os.path.join(folder, "node_modules"))
    os.symlink(os.environ["RUNTIME_SDK"], os.path.join(folder, "node_modules", "@aws-sdk"))
unpacking = threading.Lock()
running = set()


@atexit.register
def end():
    for process in list(running):
        process.kill()
    shutil.rmtree(folder, ignore_errors=True)


def unpacked(function):
    """The deployed zip's folder: one for each content."""
    place = os.path.join(folder, function.code_digest.removeprefix("sha256:"))
    with unpacking:
        if not os.path.isdir(place):
            zipfile.ZipFile(io.BytesIO(function.code_bytes)).extractall(place)
    return place


def run(function, event, request_id):
    """Runs the function once, in a process of its own: what it returned (JSON), whether it failed, what it wrote."""
    place = unpacked(function)
    # https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html#configuration-envvars-runtime
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": folder,
        "LAMBDA_TASK_ROOT": place,
        "_HANDLER": function.handler,
        "AWS_LAMBDA_FUNCTION_NAME": function.function_name,
        "AWS_LAMBDA_FUNCTION_VERSION": str(function.version),
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_size),
        "AWS_LAMBDA_LOG_GROUP_NAME": function.logs_group_name,
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{function.run_time}",
        "AWS_REGION": function.region,
        "AWS_DEFAULT_REGION": function.region,
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_SESSION_TOKEN": "local",
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED": "true",
        "LOCAL_REQUEST_ID": request_id,
        "LOCAL_TIMEOUT_MS": str(int(function.timeout) * 1000),
        "LOCAL_FUNCTION_ARN": function.function_arn,
    }
    environment.update({name: str(value) for name, value in function.environment_vars.items()})
    answer_fd, child_fd = os.pipe()
    process = subprocess.Popen(
        [node, runner, place, function.handler, str(child_fd)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        cwd=place,
        pass_fds=(child_fd,),
    )
    os.close(child_fd)
    running.add(process)
    try:
        written, _ = process.communicate(json.dumps(event).encode(), timeout=int(function.timeout))
        failed = process.returncode != 0
        with os.fdopen(answer_fd, "rb") as pipe:
            answer = pipe.read().decode()
        if not answer:
            message = f"RequestId: {request_id} Error: Runtime exited with status {process.returncode}"
            answer = json.dumps({"errorType": "Runtime.ExitError", "errorMessage": message})
            failed = True
    except subprocess.TimeoutExpired:
        process.kill()
        written, _ = process.communicate()
        os.close(answer_fd)
        message = f"{request_id} Task timed out after {function.timeout}.00 seconds"
        answer, failed = json.dumps({"errorType": "Sandbox.Timedout", "errorMessage": message}), True
    finally:
        running.discard(process)
    log = written.decode(errors="replace")
    function.logs_backend.ensure_log_group(function.logs_group_name)
    function.save_logs(log or " ")
    return answer, failed, log


def run_asynchronously(function, event, request_id):
    settings = function.event_invoke_config[0].config if function.event_invoke_config else {}
    tries = 1 + int(settings.get("MaximumRetryAttempts", 2))
    for count in range(1, tries + 1):
        answer, failed, _ = run(function, event, request_id)
        if not failed:
            return
    queue = settings.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination", "")
    if ":sqs:" in queue:
        # https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
        record = {
            "version": "1.0",
            "requestContext": {
                "requestId": request_id,
                "functionArn": f"{function.function_arn}:$LATEST",
                "condition": "RetriesExhausted",
                "approximateInvokeCount": count,
            },
            "requestPayload": event,
            "responsePayload": json.loads(answer),
        }
        backend = sqs_backends[function.account_id][function.region]
        backend.send_message(queue.split(":")[-1], json.dumps(record))


def invoke(self, body, request_headers, response_headers):
    event = json.loads(body) if body else {}
    request_id = str(uuid.uuid4())
    response_headers["x-amzn-requestid"] = request_id
    kind = request_headers.get("X-Amz-Invocation-Type", "RequestResponse")
    if kind == "DryRun":
        return b""
    if kind == "Event":
        threading.Thread(target=run_asynchronously, args=(self, event, request_id), daemon=True).start()
        return b""
    answer, failed, log = run(self, event, request_id)
    if failed:
        response_headers["x-amz-function-error"] = "Unhandled"
    response_headers["x-amz-executed-version"] = str(self.version)
    response_headers["x-amz-log-result"] = base64.b64encode(log.encode()[-4096:]).decode()
    return answer.encode()


LambdaFunction.invoke = invoke

random_id = responses.gen_amzn_requestid_long


def request_id_of(headers=None):
    """The caller learns the id that the function saw."""
    return (headers or {}).get("x-amzn-requestid") or random_id(headers)


responses.gen_amzn_requestid_long = request_id_of


def put_settings(self, function_name, config):
    """Takes the place of what was set before; moto adds to it, and goes on to answer with the first."""
    function = self.get_function(function_name)
    settings = EventInvokeConfig(function.function_arn, function.last_modified, config)
    function.event_invoke_config[:] = [settings]
    return settings.response()


def change_settings(self, function_name, config):
    function = self.get_function(function_name)
    before = function.event_invoke_config[0].config if function.event_invoke_config else {}
    return put_settings(self, function_name, {**before, **config})


LambdaBackend.put_function_event_invoke_config = put_settings
LambdaBackend.update_function_event_invoke_config = change_settings


def put(_name, given, account, region, _is_new):
    config = {
        key: int(given[key]) for key in ("MaximumRetryAttempts", "MaximumEventAgeInSeconds") if key in given
    }
    config["DestinationConfig"] = given.get("DestinationConfig", {})
    lambda_backends[account][region].put_function_event_invoke_config(given["FunctionName"], config)


def remove(_name, given, account, region):
    backend = lambda_backends[account][region]
    for function in backend.list_functions(None):
        if function.function_name == given["FunctionName"]:
            function.event_invoke_config[:] = []


settings = resource_type("AWS::Lambda::EventInvokeConfig", "", put, remove, lambda name, *_: name)
