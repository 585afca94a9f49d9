"""A local AWS for tests: moto's server, with the gaps closed that a deployment of scheduled functions falls into.

    python3 server.py PORT        listens on 127.0.0.1

Its environment: NODE names the node that runs functions, RUNTIME_SDK the folder of the AWS SDK that Lambda's runtime has.

What it adds to moto 5.2:
- CloudFormation makes schedules and their groups, alarms, and functions' event-invoke settings. moto skips them without a
  word, so that a deployment looks well that has no schedule.
- It updates tables and log groups, where moto puts nothing in their place; sets a table's TTL, recovery and deletion
  protection; keeps what has DeletionPolicy Retain when an update leaves it out; and refuses to delete a protected table.
- Functions run: the deployed zip, by the local node, in an environment like Lambda's, with this server as its AWS. An
  asynchronous invocation is answered at once; a failed one is repeated as often as the function's settings say, though
  without the platform's minutes of waiting, and then goes to the on-failure queue.
- DynamoDB requests come one after the other: a failed transaction of moto's puts back a copy of whole tables, and with it
  undoes what others wrote meanwhile.

What it isn't: nothing is checked against IAM, no schedule fires by itself, metrics in logs aren't extracted, and DynamoDB
is moto's (it checks neither item sizes nor request tokens): the tests of the protocol have an engine of their own.
"""
import os
import sys

try:
    import moto  # noqa: F401
    import moto.server  # noqa: F401
except ImportError as missing:
    print(missing, file=sys.stderr)
    sys.exit(69)  # EX_UNAVAILABLE

import alarms  # noqa: F401
import functions
import schedules  # noqa: F401
import tables  # noqa: F401
import updates  # noqa: F401

if __name__ == "__main__":
    port = sys.argv[1]
    os.environ["MOTO_PORT"] = port
    functions.endpoint = f"http://127.0.0.1:{port}"
    functions.node = os.environ.get("NODE", "node")
    moto.server.main(["-H", "127.0.0.1", "-p", port])
