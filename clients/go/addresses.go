package sluice

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
)

const suchAs = "such as http://localhost:8080"

// addresses has the address of Sluice that is asked, until that can't be reached or stops; then the next.
type addresses struct {
	bases []string
	mu    sync.Mutex
	index int
}

func newAddresses(urls []string) (*addresses, error) {
	if len(urls) == 0 {
		return nil, errors.New("sluice: URLs must have an address, " + suchAs)
	}
	bases := make([]string, len(urls))
	for i, given := range urls {
		base, err := url.Parse(given)
		if err != nil || !isAddress(base) {
			return nil, fmt.Errorf("sluice: URLs must have addresses %s, not %q", suchAs, given)
		}
		bases[i] = strings.TrimRight(base.String(), "/")
	}
	return &addresses{bases: bases}, nil
}

func isAddress(base *url.URL) bool {
	hasScheme := base.Scheme == "http" || base.Scheme == "https"
	return hasScheme && base.Host != "" && base.RawQuery == "" && base.Fragment == ""
}

func (a *addresses) count() int { return len(a.bases) }

// current returns the address that is asked now.
func (a *addresses) current() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bases[a.index]
}

// leave goes on to the next address. Of several requests that an address fails, only the first does so.
func (a *addresses) leave(address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.bases[a.index] == address {
		a.index = (a.index + 1) % len(a.bases)
	}
}
