package sluice

import (
	"errors"
	"fmt"
	"os"
	"regexp"
)

// mostHolderBytes is how long a holder may be.
const mostHolderBytes = 64

// notPrinted finds what is replaced in the name of a host. Sluice rejects a part of a character, which a cut might leave.
var notPrinted = regexp.MustCompile(`[^\x21-\x7e]`)

// hostAndProcess names this process, for people who look at what it holds.
func hostAndProcess() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("sluice: set Holder or Anonymous, since this host has no name: %w", err)
	}
	process := fmt.Sprintf(":%d", os.Getpid())
	host = notPrinted.ReplaceAllString(host, "_")
	return host[:min(len(host), mostHolderBytes-len(process))] + process, nil
}

// holderOf returns who holds what is held; nothing if nobody is to be named.
func holderOf(options Options) (string, error) {
	switch {
	case options.Anonymous && options.Holder != "":
		return "", errors.New("sluice: set Holder or Anonymous, not both")
	case options.Anonymous:
		return "", nil
	case options.Holder == "":
		return hostAndProcess()
	case len(options.Holder) > mostHolderBytes:
		return "", fmt.Errorf("sluice: Holder must be at most %d bytes, not %d", mostHolderBytes, len(options.Holder))
	}
	return options.Holder, nil
}
