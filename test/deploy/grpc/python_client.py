"""Asks a service by gRPC as lines of JSON say, and prints what comes back, a line each.

It knows no proto file: the service tells by reflection what its messages are.
"""

import json
import sys
import threading

import grpc
from google.protobuf import json_format
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

channel = grpc.insecure_channel(sys.argv[1])
reflected = ProtoReflectionDescriptorDatabase(channel)
descriptors = DescriptorPool(reflected)
printing = threading.Lock()


def tell(call_id, **result):
    with printing:
        print(json.dumps({"id": call_id, **result}), flush=True)


def as_json(message):
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


def outcome(call):
    """What has become of a call."""
    error = call.exception()
    if error:
        return {"code": error.code().name, "details": error.details()}
    return {"code": "OK", "reply": as_json(call.result())}


def ask(call_id, service, method, request):
    """Calls a method, known by its name, with a request in JSON."""
    described = descriptors.FindServiceByName(service).FindMethodByName(method)
    ask_for = channel.unary_unary(
        f"/{service}/{method}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=GetMessageClass(described.output_type).FromString,
    )
    message = json_format.ParseDict(request, GetMessageClass(described.input_type)())
    call = ask_for.future(message)
    call.add_done_callback(lambda done: tell(call_id, **outcome(done)))


def services(call_id):
    tell(call_id, services=sorted(reflected.get_services()))


def types(call_id, message):
    """Tells the types of a message's fields that are messages."""
    fields = descriptors.FindMessageTypeByName(message).fields
    found = {field.name: field.message_type for field in fields}
    tell(call_id, types={name: type.full_name for name, type in found.items() if type})


ACTIONS = {action.__name__: action for action in (ask, services, types)}

for line in sys.stdin:
    command = json.loads(line)
    ACTIONS[command.pop("do")](command.pop("id"), **command)
