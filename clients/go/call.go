package sluice

import (
	"net/http"
	"net/url"
	"strings"
)

// call is a request to Sluice.
type call struct {
	method string
	// names are the parts of the path: the key, and the request id if the call is about a request.
	names []string
	query url.Values
	// prefer is the header Prefer, if it is not empty.
	prefer string
}

// waits says whether the call is a wait, which is answered late.
func (c call) waits() bool { return c.query.Has("canWait") }

// onlyAnswerHasID says whether only the answer has the id of an approval.
func (c call) onlyAnswerHasID() bool { return c.method == http.MethodPost && !c.query.Has("requestId") }

// isRepeatable says whether the call may be sent again although the first may have taken effect. Checks with one id
// are one check, and all calls but checks change nothing more the second time.
func (c call) isRepeatable() bool { return !c.onlyAnswerHasID() }

// path is the path with the query, below the address of Sluice.
func (c call) path() string {
	var path strings.Builder
	path.WriteString("/rate")
	for _, name := range c.names {
		path.WriteByte('/')
		// A name of dots would be part of the path.
		path.WriteString(strings.ReplaceAll(url.PathEscape(name), ".", "%2E"))
	}
	if len(c.query) > 0 {
		path.WriteByte('?')
		path.WriteString(c.query.Encode())
	}
	return path.String()
}
