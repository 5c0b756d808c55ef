"""The requests over HTTP: the address of each, the role that it needs, and which errors it may have.

Promise: one table; the routes, their description and both clients follow from it.
"""

import inspect
from typing import Literal, get_args

from msgspec import Struct

from stream_car.api import requests as r

Role = Literal["read", "publish", "metrics", "admin"]  # of a token; `admin` includes the others
ROLES: tuple[Role, ...] = get_args(Role)
WAITING = (409, 504)
BODY = (408, 413, 415)
PATH_FIELD = "name"  # the field of a request that its path holds, if it holds one


class Operation(Struct, frozen=True, kw_only=True):
    """A request over HTTP: POST has it as the JSON body, GET as parameters. `statuses` are its errors.

    With `needs_token`, a service without tokens does not do it.
    """

    name: str
    method: str
    path: str
    request: type[r.Request[object]]
    role: Role = "read"
    statuses: tuple[int, ...] = ()
    needs_token: bool = False

    @property
    def description(self) -> str:
        """What it is for."""
        return inspect.cleandoc(self.request.__doc__ or "")

    @property
    def is_audited(self) -> bool:
        """Whether it may change something, so that the audit log names who sent it."""
        return self.role != "read" and self.method == "POST"

    @property
    def has_path_field(self) -> bool:
        """Whether the path holds a field of the request."""
        return "{" in self.path


def _get(name: str, request: type[r.Request[object]], path: str = "", *, role: Role = "read") -> Operation:
    path = path or f"/v1/{name}"
    return Operation(name=name, method="GET", path=path, request=request, role=role, statuses=(400, 503))


def _post(
    name: str, request: type[r.Request[object]], *statuses: int, role: Role = "read", needs_token: bool = False
) -> Operation:
    return Operation(
        name=name,
        method="POST",
        path=f"/v1/{name}",
        request=request,
        role=role,
        statuses=(400, *BODY, *statuses, 503),
        needs_token=needs_token,
    )


OPERATIONS = (
    _post("query", r.Query, *WAITING),
    _post("search", r.Search),
    _post("resolve", r.Resolve, *WAITING),
    _post("get", r.GetDocuments, *WAITING),
    _post("affected", r.GetAffected, *WAITING),
    _post("check", r.Check, *WAITING),
    _get("frontier", r.GetFrontier),
    _get("history", r.GetHistory),
    _get("changes", r.GetChanges),
    _get("explain", r.Explain, "/v1/explain/{name}"),
    _get("rejected", r.GetRejected, role="admin"),
    _post("replay", r.Replay, role="admin"),
    _get("quarantine", r.GetQuarantine, role="admin"),
    _get("quarantined", r.GetQuarantined, "/v1/quarantine/{name}", role="admin"),
    _post("retry_quarantined", r.RetryQuarantined, role="admin"),
    _post("drop_quarantined", r.DropQuarantined, role="admin"),
    _get("pending", r.GetPending),
    _get("rules", r.GetRules),
    _get("status", r.GetStatus),
    _post("rebuild", r.Rebuild, 409, 422, 501, role="admin", needs_token=True),
    _get("rebuild_status", r.GetRebuildStatus, "/v1/rebuild", role="admin"),
)
BY_REQUEST = {operation.request: operation for operation in OPERATIONS}
PUBLISH_PATH = "/v1/documents"
PUBLISH_ROLE: Role = "publish"
SUBSCRIBE_PATH = "/v1/subscribe"
SUBSCRIBE_ROLE: Role = "read"
METRICS_ROLE: Role = "metrics"
