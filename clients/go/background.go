package sluice

import "sync"

// background has the goroutines that give back what callers have left.
type background struct{ running sync.WaitGroup }

func (b *background) run(work func()) {
	b.running.Add(1)
	go func() {
		defer b.running.Done()
		work()
	}()
}

// wait returns once all have ended. No call of the client may be under way.
func (b *background) wait() { b.running.Wait() }
