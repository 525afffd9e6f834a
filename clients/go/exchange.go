package sluice

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

const (
	// A host that is gone does not refuse a connection. Long enough for a packet to be lost.
	connectTime = 2 * time.Second
	// After this silence, TCP asks whether the other side is still there: a wait is silent until its turn, and a NAT may
	// forget its connection.
	silence = 15 * time.Second
	// Longer than the pauses between requests under load, shorter than the 75 s after which Sluice closes idle
	// connections.
	idleTime = 60 * time.Second
	// As many as are in flight, so that no connection is closed and opened again under load.
	idleConnections = 2 * mostInFlight
	// mostBodyBytes is more than any answer of Sluice has.
	mostBodyBytes = 1 << 20
)

// errOutOfTime is the cause of a context that has ended since there was no answer in time.
var errOutOfTime = fmt.Errorf("no answer in time: %w", context.DeadlineExceeded)

// exchange sends requests to one of the addresses of Sluice.
type exchange struct {
	addresses *addresses
	lines     lines
	token     func(context.Context) (string, error)
	http      http.Client
	late      lateReads
}

// newTransport returns the transport of a client, which uses no proxy of the environment. Each wait takes a connection, so
// that these have no bound.
func newTransport() *http.Transport {
	dialer := net.Dialer{Timeout: connectTime, KeepAlive: silence}
	return &http.Transport{
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: connectTime,
		IdleConnTimeout:     idleTime,
		MaxIdleConnsPerHost: idleConnections,
	}
}

// send sends a request once. An answer with a 5xx is an UnavailableError.
//
// If the context of a check ends whose id is only in its answer, the answer is still read for a while.
func (e *exchange) send(ctx context.Context, c call) (answer, error) {
	line := e.lines.of(c)
	if !line.enter(ctx) {
		return answer{}, ended(ctx, false)
	}
	defer line.leave()
	address := e.addresses.current()
	request, err := e.request(ctx, address, c)
	if err != nil {
		return answer{}, err
	}
	var got answer
	if c.onlyAnswerHasID() {
		got, err = e.late.do(request, c.names[0], e.do)
	} else {
		got, err = e.do(request)
	}
	if err != nil {
		if ctx.Err() == nil || context.Cause(ctx) == errOutOfTime {
			e.addresses.leave(address)
		}
		return answer{}, unanswered(ctx, err)
	}
	if got.isLast {
		e.addresses.leave(address)
	}
	if got.status >= 500 {
		return answer{}, got.failure()
	}
	return got, nil
}

func (e *exchange) request(ctx context.Context, address string, c call) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, c.method, address+c.path(), nil)
	if err != nil {
		return nil, fmt.Errorf("sluice: %w", err)
	}
	token, err := e.token(ctx)
	if err != nil {
		return nil, fmt.Errorf("sluice: no token available: %w", err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	if c.prefer != "" {
		request.Header.Set("Prefer", c.prefer)
	}
	return request, nil
}

func (e *exchange) do(request *http.Request) (answer, error) {
	response, err := e.http.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, mostBodyBytes))
	if err != nil {
		return answer{}, err
	}
	return answer{response.StatusCode, response.Header, response.Close, bodyIn(text)}, nil
}

// unanswered returns the error of a request without an answer.
func unanswered(ctx context.Context, err error) *UnavailableError {
	var inURL *url.Error
	if errors.As(err, &inURL) {
		err = inURL.Err
	}
	isNeverSent := wasNeverSent(err)
	if ctx.Err() != nil {
		return ended(ctx, !isNeverSent)
	}
	message := "the answer was lost"
	if isNeverSent {
		message = "unreachable"
	}
	return &UnavailableError{Message: message, MayHaveCounted: !isNeverSent, isLost: true, cause: err}
}

// ended returns the error of a call whose context has ended.
func ended(ctx context.Context, mayHaveCounted bool) *UnavailableError {
	return &UnavailableError{Message: "no decision", MayHaveCounted: mayHaveCounted, cause: endOf(ctx)}
}

// wasNeverSent says whether a request failed since there was no connection to send it on.
func wasNeverSent(err error) bool {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return true
	}
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &certificate)
}
