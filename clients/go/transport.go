package sluice

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Transport is an http.RoundTripper that waits for permission before it sends a request. Set Client and Key.
//
// The context of a request, and so the Timeout of an http.Client, also bounds the wait. A request that is denied fails
// with a [DeniedError], and one without a decision with an [UnavailableError]; neither is sent.
//
// If there was no connection to send a request on, its approval is released. After any other failure the approval stays,
// since the target may have counted the request.
type Transport struct {
	Client *Client
	// Key returns the key to ask for. A request with an empty key is not limited.
	Key func(*http.Request) string
	// Options says how to ask for each request. A hold is neither renewed nor released.
	Options WaitOptions
	// PausesKey has an answer of 429 or 503 with Retry-After-Ms or Retry-After pause the key for that time, for all callers. A pause that
	// fails is ignored: the next such answer asks for it again.
	PausesKey bool
	// PausesGroup has such an answer pause only the group of Options, or the key if that is empty.
	PausesGroup bool
	// ReportsRemaining names the limits of the key to which is reported what a vendor says remains of its own. By
	// default nothing is reported.
	ReportsRemaining ReportedLimits
	// Base sends the requests. By default it is http.DefaultTransport.
	Base http.RoundTripper

	reports remainingReports
}

// RoundTrip sends a request once it is approved.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	key, decision, err := t.ask(request)
	if err != nil {
		if request.Body != nil {
			request.Body.Close()
		}
		return nil, err
	}
	base := t.base()
	if key == "" {
		return base.RoundTrip(request)
	}
	ctx := request.Context()
	response, err := base.RoundTrip(request)
	if err != nil {
		if wasNeverSent(err) {
			// The caller is told of its own failure: the approval ends with its window.
			_, _ = t.Client.Release(context.WithoutCancel(ctx), key, decision.RequestID)
		}
		return nil, err
	}
	// Before the answer is returned, so that the caller's next request finds the report and the pause.
	t.tell(ctx, key, response, decision.Quota)
	return response, nil
}

// CloseIdleConnections closes the idle connections of Base, as http.Client.CloseIdleConnections asks for.
func (t *Transport) CloseIdleConnections() {
	if base, ok := t.base().(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

func (t *Transport) base() http.RoundTripper {
	if t.Base == nil {
		return http.DefaultTransport
	}
	return t.Base
}

// ask returns the key of a request and its approval; an empty key if the request is not limited.
func (t *Transport) ask(request *http.Request) (string, Decision, error) {
	if t.Client == nil || t.Key == nil {
		return "", Decision{}, errors.New("sluice: a Transport needs a Client and a Key")
	}
	key := t.Key(request)
	if key == "" {
		return "", Decision{}, nil
	}
	decision, err := t.Client.Wait(request.Context(), key, t.Options)
	if err == nil && !decision.Approved {
		err = deniedError(key, decision)
	}
	return key, decision, err
}

// tell tells Sluice what an answer says.
func (t *Transport) tell(ctx context.Context, key string, response *http.Response, quota []Quota) {
	var reported, paused string
	if t.ReportsRemaining.PerGroup {
		reported = t.Options.Group
	}
	if t.PausesGroup {
		paused = t.Options.Group
	}
	least := t.ReportsRemaining.leastIn(response.Header, time.Now())
	pauses := map[string]time.Duration{reported: t.reports.report(ctx, t.Client, key, reported, least, quota)}
	if t.PausesKey || t.PausesGroup {
		pauses[paused] = max(pauses[paused], timeToRetry(response, time.Now()))
	}
	for group, pause := range pauses {
		if pause > 0 {
			// Another answer may have asked for longer.
			_ = t.Client.Pause(ctx, key, pause, PauseOptions{Group: group, AtLeast: true})
		}
	}
}
