"""Allow-list of requests: those of the page, of its scripts, and of monitoring.

Every other path is answered with 404.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum, auto

API = "/gradio_api"
SESSION = r"[A-Za-z0-9_-]{1,64}"
_FILE = r"[A-Za-z0-9_@-][A-Za-z0-9_.@-]{0,99}"  # the system refuses to look for longer names and paths
_READ = frozenset({"GET", "HEAD"})


class Kind(Enum):
    """How a request is checked, and how it is answered."""

    PAGE = auto()  # the page itself: the same for everybody
    FILE = auto()  # a file of Gradio's: the same for everybody
    OWN = auto()  # a file of ours
    HEARTBEAT = auto()  # open as long as its tab is
    RECONNECT = auto()  # asked every two seconds by a page that lost its server: at an answer it loads itself anew
    EVENTS = auto()  # server-sent events of a tab's runs
    QUICK = auto()  # an event that only changes the page
    RUN = auto()  # an event that decodes: it joins the queue
    CALL = auto()  # a server function called by the page's scripts
    HEALTH = auto()  # whether the server is up: it contains nothing private, so it is answered under any host name
    METRICS = auto()  # what a Prometheus server scrapes, if the owner wants that


@dataclass(frozen=True, slots=True)
class Route:
    """A path pattern and its HTTP methods."""

    kind: Kind
    path: re.Pattern[str]
    methods: frozenset[str] = field(default=_READ)


_POST, _GET = frozenset({"POST"}), frozenset({"GET"})
ROUTES = (
    Route(Kind.PAGE, re.compile("/")),
    Route(Kind.FILE, re.compile(rf"/theme\.css|/favicon\.ico|/(?:assets|static)(?:/{_FILE}){{1,8}}")),
    Route(Kind.OWN, re.compile(r"/specscope/[a-z]+")),
    Route(Kind.HEARTBEAT, re.compile(rf"{API}/heartbeat/{SESSION}"), _GET),
    Route(Kind.RECONNECT, re.compile(rf"{API}/app_id"), _GET),
    Route(Kind.EVENTS, re.compile(rf"{API}/queue/data"), _GET),
    Route(Kind.QUICK, re.compile(rf"{API}/run/predict"), _POST),
    Route(Kind.RUN, re.compile(rf"{API}/queue/join"), _POST),
    Route(Kind.CALL, re.compile(rf"{API}/component_server/"), _POST),
    Route(Kind.HEALTH, re.compile("/healthz")),
    Route(Kind.METRICS, re.compile("/metrics")),
)


OPTIONAL = frozenset({Kind.METRICS})


def find_route(path: str, offered: frozenset[Kind] = frozenset()) -> Route | None:
    """Return the route of a path; an optional one only if it is offered."""
    route = next((route for route in ROUTES if route.path.fullmatch(path)), None)
    return None if route and route.kind in OPTIONAL - offered else route
