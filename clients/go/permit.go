package sluice

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// defaultHold is how long a permit is held after its last renewal.
const defaultHold = 30 * time.Second

// Permit is an approval that counts until Release. A goroutine renews its hold.
type Permit struct {
	Key       string
	RequestID string
	// Quota is what was left as of the approval, as in a Decision.
	Quota  []Quota
	client *Client
	// work ends when the permit is lost, or with the context of the caller.
	work    context.Context
	endWork context.CancelCauseFunc
	// renewals end with Release.
	stopRenewals context.CancelFunc
	renewals     sync.WaitGroup
	isLost       bool
	release      func() error
}

// Permit waits for permission, and holds it until Release. Options.MaxWait can be [NoWait]. Options.Hold is 30 s by
// default: so long after the last renewal the permit of a crashed process ends. With [NoHold] the permit is not renewed:
// without a Release, it ends with its window.
//
// The error is a DeniedError if Sluice denies the permit.
func (c *Client) Permit(ctx context.Context, key string, options WaitOptions) (*Permit, error) {
	options.Hold = max(0, cmp.Or(options.Hold, defaultHold))
	askedAt := time.Now()
	decision, err := c.Wait(ctx, key, options)
	if err != nil {
		return nil, err
	}
	if !decision.Approved {
		return nil, deniedError(key, decision)
	}
	permit := &Permit{Key: key, RequestID: decision.RequestID, Quota: decision.Quota, client: c}
	permit.work, permit.endWork = context.WithCancelCause(ctx)
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	permit.stopRenewals = stop
	permit.release = sync.OnceValue(permit.giveBack)
	if options.Hold == 0 || decision.Uncounted {
		return permit, nil
	}
	held := &hold{client: c, key: key, requestID: decision.RequestID, length: options.Hold, heldSince: askedAt}
	if err := held.begin(ctx); err != nil {
		permit.lose(err)
		c.background.run(func() { _ = permit.Release() })
		return nil, err
	}
	permit.renewals.Add(1)
	go func() {
		defer permit.renewals.Done()
		permit.lose(held.keepRenewed(renewing))
	}()
	return permit, nil
}

// Context returns the context of the work. It ends with the context that the permit was asked for with, with Release, and
// if the permit is lost: then [context.Cause] is a PermitLostError.
func (p *Permit) Context() context.Context { return p.work }

// Release ends the permit. It returns once Sluice has released it, or after the client's Timeout. The error of a release
// that fails can be ignored, since the permit then ends with its hold or window. Further calls wait for the first one.
func (p *Permit) Release() error { return p.release() }

func (p *Permit) giveBack() (err error) {
	p.stopRenewals()
	p.renewals.Wait()
	if !p.isLost {
		_, err = p.client.Release(context.WithoutCancel(p.work), p.Key, p.RequestID)
	}
	p.endWork(nil)
	return err
}

// lose ends the work, unless the error says that the renewals have been stopped.
func (p *Permit) lose(err error) {
	if isLoss(err) {
		p.isLost = true
		p.endWork(err)
	}
}
