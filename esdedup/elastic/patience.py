"""Retries the requests of owners and maintenance while the cluster is unavailable."""

import logging
import threading
import time
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import elastic_transport
import tenacity
from elasticsearch import Elasticsearch

from esdedup.elastic.client import addresses_of, refuse_inherited
from esdedup.elastic.closing import ENDING
from esdedup.elastic.errors import is_blocked
from esdedup.elastic.limits import BUSY_STATUSES

log = logging.getLogger("esdedup")

# A restarted server answers within a minute, and then recovers its shards within seconds.
PATIENCE_S = 90.0
# A server that this process has never reached is probably not running, or has another address.
FIRST_PATIENCE_S = 3.0
_ANSWER_S = 60.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 2.0
# Shorter waits are not logged.
_UNREMARKABLE_S = 1.0
_LATE_S = 5.0
_TRANSIENT = (elastic_transport.ConnectionError, elastic_transport.ConnectionTimeout)
# By node pool, which a client shares with its copies: the servers that have answered, and how long to wait
# for servers that are starting.
_answered: WeakSet[Any] = WeakSet()
_start_s: WeakKeyDictionary[Any, float] = WeakKeyDictionary()


def await_first_answer(client: Elasticsearch, wait_s: float) -> None:
    """Allow a server this many seconds to start, if that is more than usual."""
    if wait_s > FIRST_PATIENCE_S:
        _start_s[client.transport.node_pool] = wait_s


def retrying(
    *retries: tenacity.retry_base, patience_s: float = PATIENCE_S, **options: Any
) -> tenacity.Retrying:
    """Return a `Retrying` with growing pauses; once it gives up, it returns or raises the last outcome."""
    return tenacity.Retrying(
        retry=tenacity.retry_any(*retries),
        stop=tenacity.stop_any(tenacity.stop_after_delay(patience_s), tenacity.stop_when_event_set(ENDING)),
        wait=tenacity.wait_random_exponential(multiplier=_FIRST_PAUSE_S, max=_LONGEST_PAUSE_S),
        retry_error_callback=_result_of,
        **options,
    )


class _PatientTransport:
    """Retries a request while the cluster is unavailable and, unlike the client, pauses between attempts."""

    def __init__(self, client: Elasticsearch, *, patience_s: float) -> None:
        self.impatient = client
        self._transport = client.transport
        self._patience_s = patience_s

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def perform_request(self, *request: Any, **parameters: Any) -> elastic_transport.TransportApiResponse:
        refuse_inherited(self.impatient)
        waited_s, is_logged, begun_s = 0.0, False, time.monotonic()
        pool = self._transport.node_pool
        start_s = _start_s.get(pool, min(FIRST_PATIENCE_S, self._patience_s))

        def patience_s() -> float:
            return self._patience_s if pool in _answered else start_s

        def send() -> elastic_transport.TransportApiResponse:
            answer = self._transport.perform_request(*request, **parameters)
            _answered.add(pool)
            return answer

        def log_wait(state: tenacity.RetryCallState) -> None:
            nonlocal waited_s, is_logged
            waited_s = state.seconds_since_start or 0.0
            if is_logged or waited_s < _UNREMARKABLE_S:
                return
            is_logged = True
            late.cancel()
            assert state.outcome is not None
            why = "does not answer"
            if state.outcome.exception() is None:
                why = f"is busy (status {state.outcome.result().meta.status})"
            log.warning("Elasticsearch at %s %s: retrying for up to %g s", at, why, patience_s())

        at = addresses_of(self.impatient)
        # Warn early about a server that accepts the first request but does not answer it.
        late = threading.Timer(_LATE_S, log.warning, ("Elasticsearch at %s has not answered yet", at))
        late.daemon = True
        if pool not in _answered:
            late.start()
        try:
            answer: elastic_transport.TransportApiResponse = retrying(
                tenacity.retry_if_exception(
                    lambda error: _is_transient(error) and time.monotonic() - begun_s < patience_s()
                ),
                tenacity.retry_if_result(_is_busy),
                patience_s=max(self._patience_s, start_s),
                before_sleep=log_wait,
            )(send)
        except _TRANSIENT as error:
            if pool in _answered or not _is_transient(error):
                raise
            why = f"{error.message}; if {at} is starting, `wait_s` waits for it"
            raise type(error)(why, errors=error.errors) from error
        finally:
            late.cancel()
        if is_logged:
            log.warning("Elasticsearch answers again, after %.0f s", waited_s)
        return answer


def patient(client: Elasticsearch, *, patience_s: float = PATIENCE_S) -> Elasticsearch:
    """Return a client that retries requests while its servers are unavailable; a request may run twice."""
    if isinstance(client.transport, _PatientTransport):
        return client
    answer_s = min(patience_s, _ANSWER_S)
    # Repeat timed-out requests here, since the client's own retries would time out four times first.
    copy = client.options(request_timeout=answer_s, max_retries=3, retry_on_timeout=False)
    copy._transport = _PatientTransport(client, patience_s=patience_s)  # type: ignore[assignment]
    return copy


def _is_transient(error: BaseException) -> bool:
    is_closed = "Pool is closed" in getattr(error, "message", "")
    return isinstance(error, _TRANSIENT) and not (is_closed or isinstance(error, elastic_transport.TlsError))


def _is_busy(answer: elastic_transport.TransportApiResponse) -> bool:
    """Return whether the server was too busy for a request, or for one of several searches in it."""
    if answer.meta.status in BUSY_STATUSES:
        return not is_blocked(answer.body)
    searches = answer.body.get("responses", ()) if isinstance(answer.body, dict) else ()
    return any(each.get("status") in BUSY_STATUSES and not is_blocked(each) for each in searches)


def _result_of(state: tenacity.RetryCallState) -> Any:
    assert state.outcome is not None
    return state.outcome.result()
