package sluice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	defaultTimeout   = 5 * time.Second
	defaultRetries   = 3
	defaultKeepPlace = 30 * time.Second
	defaultLongPoll  = 25 * time.Second
)

// Client asks Sluice for permission. One client is enough for a process, and its goroutines may share it.
type Client struct {
	exchange exchange
	// own is the transport that ends with the client; nil if it was given one.
	own        *http.Transport
	background background
	// life ends when the client is closed, by end.
	life    context.Context
	end     context.CancelFunc
	timeout time.Duration
	retries int
	waiting waiting
	holder  string
}

// New returns a client. It opens no connection before its first call. The error names the option that is wrong.
func New(options Options) (*Client, error) {
	addresses, err := newAddresses(options.URLs)
	if err != nil {
		return nil, err
	}
	token, err := tokenSource(options)
	if err != nil {
		return nil, err
	}
	holder, err := holderOf(options)
	if err != nil {
		return nil, err
	}
	if options.Timeout < 0 || options.LongPoll < 0 {
		return nil, fmt.Errorf(
			"sluice: Timeout and LongPoll must not be negative, not %v and %v", options.Timeout, options.LongPoll)
	}
	client := &Client{
		exchange: exchange{addresses: addresses, lines: newLines(), token: token},
		timeout:  cmp.Or(options.Timeout, defaultTimeout),
		retries:  max(0, cmp.Or(options.Retries, defaultRetries)),
		waiting: waiting{
			keep:     max(0, cmp.Or(options.KeepPlace, defaultKeepPlace)),
			longPoll: cmp.Or(options.LongPoll, defaultLongPoll),
		},
		holder: holder,
	}
	client.life, client.end = context.WithCancel(context.Background())
	transport := options.Transport
	if transport == nil {
		client.own = newTransport()
		transport = client.own
	}
	client.exchange.http = http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	client.exchange.late = lateReads{&client.background, client.Release}
	return client, nil
}

// Close waits until all that is given back for calls whose contexts have ended is given back, and closes the idle
// connections. That takes 11 s at most with the default Timeout. Call it once the other calls have returned.
func (c *Client) Close() {
	c.end()
	c.background.wait()
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
}

// Check asks for permission, and is approved or denied at once.
func (c *Client) Check(ctx context.Context, key string, options CheckOptions) (Decision, error) {
	got, err := c.send(ctx, call{method: http.MethodPost, names: []string{key}, query: c.checkQuery(options)})
	if err != nil {
		return Decision{}, err
	}
	return got.decision()
}

// Peek says what a check with these options would get now. Nothing is counted, and the answer promises nothing.
func (c *Client) Peek(ctx context.Context, key string, options CheckOptions) (Peek, error) {
	query := options.query()
	query.Set("peek", "true")
	got, err := c.send(ctx, call{method: http.MethodGet, names: []string{key}, query: query})
	if err != nil {
		return Peek{}, err
	}
	return got.peek()
}

// Release releases an approval, or withdraws a request that waits. It returns false if there is none any more.
func (c *Client) Release(ctx context.Context, key, requestID string) (bool, error) {
	return c.sendAbout(ctx, call{method: http.MethodDelete, names: []string{key, requestID}})
}

// Renew begins the hold of an approval again, with the length `hold`, or as long as before if that is 0. It returns
// false if the approval no longer exists, or is not held.
func (c *Client) Renew(ctx context.Context, key, requestID string, hold time.Duration) (bool, error) {
	query := url.Values{}
	setDuration(query, "holdMillis", hold)
	return c.sendAbout(ctx, amendment(key, requestID, query))
}

// Correct sets the hits of an approval, for example once the true cost is known. It returns false if the approval no
// longer exists.
func (c *Client) Correct(ctx context.Context, key, requestID string, hits int) (bool, error) {
	return c.sendAbout(ctx, amendment(key, requestID, url.Values{"hits": {strconv.Itoa(hits)}}))
}

// Pause has Sluice approve nobody on the key, or in a group of it, for so long, whoever asks. 0 ends the pause.
func (c *Client) Pause(ctx context.Context, key string, length time.Duration, options PauseOptions) error {
	query := url.Values{"pauseMillis": {millis(length)}}
	setText(query, "group", options.Group)
	if options.AtLeast {
		query.Set("canShorten", "false")
	}
	return c.sendChange(ctx, key, query)
}

// ReportRemaining reports how much remains of a quota that Sluice does not count alone, such as a vendor's. If Sluice
// believes that more remains, it approves only so much from now on. A report never makes room. The limit must be a fixed
// window.
func (c *Client) ReportRemaining(ctx context.Context, key string, remaining int64, options ReportOptions) error {
	query := url.Values{"remaining": {strconv.FormatInt(remaining, 10)}}
	setDuration(query, "resetMillis", options.Reset)
	setText(query, "limit", options.Limit)
	setText(query, "group", options.Group)
	return c.sendChange(ctx, key, query)
}

// sendAbout sends a call about an approval. It returns false if there is none.
func (c *Client) sendAbout(ctx context.Context, about call) (bool, error) {
	got, err := c.send(ctx, about)
	if err != nil {
		return false, err
	}
	return got.isFound()
}

// amendment returns a call that changes an approval. In any case its hold begins again, if it is held.
func amendment(key, requestID string, query url.Values) call {
	return call{method: http.MethodPut, names: []string{key, requestID}, query: query}
}

// sendChange changes a key.
func (c *Client) sendChange(ctx context.Context, key string, query url.Values) error {
	got, err := c.send(ctx, call{method: http.MethodPut, names: []string{key}, query: query})
	if err != nil {
		return err
	}
	if got.status != http.StatusOK {
		return got.failure()
	}
	return nil
}

// checkQuery returns the parameters of a check, with the holder if the approval is to be held.
func (c *Client) checkQuery(options CheckOptions) url.Values {
	query := options.query()
	if options.Hold != 0 {
		setText(query, "holder", c.holder)
	}
	return query
}

// send sends a call, and sends it again if that helps, for no longer than the client's Timeout.
func (c *Client) send(ctx context.Context, what call) (answer, error) {
	return c.sendWithin(ctx, what, c.timeout, c.retries)
}

// sendWithin sends a call for no longer than `timeout`, and again after at most `most` pauses.
func (c *Client) sendWithin(ctx context.Context, what call, timeout time.Duration, most int) (answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errOutOfTime)
	defer cancel()
	return c.sendRepeatedly(ctx, what, most)
}

func (c *Client) sendRepeatedly(ctx context.Context, what call, most int) (answer, error) {
	trying := retries{call: what, most: most, addresses: c.exchange.addresses.count()}
	for ctx.Err() == nil {
		got, err := c.exchange.send(ctx, what)
		var failure *UnavailableError
		if !errors.As(err, &failure) {
			return got, err
		}
		pause, again := trying.after(failure)
		if !again || endsWithin(ctx, pause) {
			return answer{}, failure
		}
		sleep(ctx, pause)
	}
	return answer{}, ended(ctx, trying.wasLost)
}

func tokenSource(options Options) (func(context.Context) (string, error), error) {
	if options.TokenSource == nil {
		return func(context.Context) (string, error) { return options.Token, nil }, nil
	}
	if options.Token != "" {
		return nil, errors.New("sluice: set Token or TokenSource, not both")
	}
	return options.TokenSource, nil
}
