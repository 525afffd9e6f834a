package sluice

import (
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// unit is something that a vendor counts.
type unit int

const (
	unitRequests unit = iota
	unitTokens
	unitInputTokens
	unitOutputTokens
)

// vendorRemaining is what a vendor says about one of its limits.
type vendorRemaining struct {
	unit      unit
	remaining int64
	// reset is the time until the limit resets, of 1 ms to a day; 0 if the vendor does not say when.
	reset time.Duration
}

// stated is what the headers have about a limit.
type stated struct {
	unit             unit
	remaining, reset string
}

// vendorHeaders say what remains of a limit, and when it resets: those of the older drafts of RateLimit, of GitHub and many
// others, of OpenAI and Azure, and of Anthropic.
var vendorHeaders = []stated{
	{unitRequests, "RateLimit-Remaining", "RateLimit-Reset"},
	{unitRequests, "X-RateLimit-Remaining", "X-RateLimit-Reset"},
	{unitRequests, "X-RateLimit-Remaining-Requests", "X-RateLimit-Reset-Requests"},
	{unitTokens, "X-RateLimit-Remaining-Tokens", "X-RateLimit-Reset-Tokens"},
	{unitRequests, "Anthropic-RateLimit-Requests-Remaining", "Anthropic-RateLimit-Requests-Reset"},
	{unitTokens, "Anthropic-RateLimit-Tokens-Remaining", "Anthropic-RateLimit-Tokens-Reset"},
	{unitInputTokens, "Anthropic-RateLimit-Input-Tokens-Remaining", "Anthropic-RateLimit-Input-Tokens-Reset"},
	{unitOutputTokens, "Anthropic-RateLimit-Output-Tokens-Remaining", "Anthropic-RateLimit-Output-Tokens-Reset"},
}

var (
	numberPattern       = regexp.MustCompile(`^[0-9]{1,15}(?:\.[0-9]+)?$`)
	durationPattern     = regexp.MustCompile(`^(?:[0-9]{1,15}(?:\.[0-9]+)?(?:ms|[smhd]))+$`)
	durationPartPattern = regexp.MustCompile(`([0-9]+(?:\.[0-9]+)?)(ms|[smhd])`)
	// A date of RFC 3339.
	datePattern = regexp.MustCompile(
		`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})$`)
	remainingPattern = regexp.MustCompile(`(?:^|[ ,])remaining=([0-9.]+)`)
	resetPattern     = regexp.MustCompile(`(?:^|[ ,])reset=([0-9.]+)`)
)

// unitMillis has the milliseconds of each unit of a duration.
var unitMillis = map[string]float64{"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

const (
	// More seconds than these are a date: seconds since 1970.
	yearSeconds = 365 * 86_400
	// More than these, which would be in the year 5138, are milliseconds since 1970.
	largestDateSeconds = 1e11
	// longestTime is the longest reset and the longest pause that Sluice takes.
	longestTime = 24 * time.Hour
)

// remainingIn reads what remains of the limits of a vendor, as the headers of its answer say. A limit may be there several
// times. It ignores values that can't be read, and limits that have reset already. `now` is for an answer without its date.
func remainingIn(header http.Header, now time.Time) []vendorRemaining {
	said := statedByDraft(header)
	for _, names := range vendorHeaders {
		said = append(said, stated{names.unit, valueOf(header, names.remaining), valueOf(header, names.reset)})
	}
	at := sentAt(header, now)
	var found []vendorRemaining
	for _, one := range said {
		resets := itemsOf(one.reset)
		for i, text := range itemsOf(one.remaining) {
			reset := ""
			if len(resets) == 1 {
				reset = resets[0]
			} else if i < len(resets) {
				reset = resets[i]
			}
			remaining, ok := numberIn(text)
			millis, hasReset := millisUntil(reset, at)
			if ok && (!hasReset || millis > 0) {
				found = append(found, vendorRemaining{one.unit, int64(remaining), timeOf(millis)})
			}
		}
	}
	return found
}

// timeToRetry returns for how long an answer asks its caller to wait, of 0 to a day: by Retry-After-Ms of OpenAI and Azure,
// or by Retry-After, which has seconds or a date (RFC 9110, section 10.2.3).
func timeToRetry(response *http.Response, now time.Time) time.Duration {
	if response.StatusCode != http.StatusTooManyRequests && response.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	if millis, ok := numberIn(response.Header.Get("Retry-After-Ms")); ok {
		return timeOf(millis)
	}
	text := response.Header.Get("Retry-After")
	if seconds, ok := numberIn(text); ok {
		return timeOf(seconds * 1000)
	}
	date, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(0, date.Sub(sentAt(response.Header, now))), longestTime)
}

// sentAt returns when an answer was sent, by the vendor's clock if it says so: its dates are of the same clock.
func sentAt(header http.Header, now time.Time) time.Time {
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		return date
	}
	return now
}

// itemsOf returns the items of a header, which may be a list if it is about several limits.
func itemsOf(text string) []string {
	items := strings.Split(text, ",")
	for i, item := range items {
		items[i] = strings.TrimSpace(item)
	}
	return items
}

func timeOf(millis float64) time.Duration {
	return time.Duration(math.Ceil(min(millis, float64(longestTime.Milliseconds())))) * time.Millisecond
}

// statedByDraft reads RateLimit: "name";r=12;t=60 for each limit, as of draft-ietf-httpapi-ratelimit-headers-08 to -11, or
// limit=100, remaining=12, reset=60, as of -07.
func statedByDraft(header http.Header) []stated {
	policies := map[string]map[string]string{}
	for _, policy := range structuredItems(valueOf(header, "RateLimit-Policy")) {
		policies[policy.text] = policy.parameters
	}
	text := valueOf(header, "RateLimit")
	var said []stated
	for _, item := range structuredItems(text) {
		// Other units are bytes and connections.
		if quotaUnit, ok := policies[item.text]["qu"]; !ok || quotaUnit == `"requests"` {
			said = append(said, stated{unitRequests, item.parameters["r"], item.parameters["t"]})
		}
	}
	return append(said, stated{unitRequests, firstGroup(remainingPattern, text), firstGroup(resetPattern, text)})
}

// millisUntil reads when a limit resets: seconds, a duration such as 6m0s, or a date, which is seconds or milliseconds since
// 1970 or RFC 3339.
func millisUntil(text string, now time.Time) (float64, bool) {
	nowMillis := float64(now.UnixMilli())
	seconds, isNumber := numberIn(text)
	switch {
	case isNumber && seconds > largestDateSeconds:
		return seconds - nowMillis, true
	case isNumber && seconds > yearSeconds:
		return seconds*1000 - nowMillis, true
	case isNumber:
		return seconds * 1000, true
	case durationPattern.MatchString(text):
		millis := 0.0
		for _, part := range durationPartPattern.FindAllStringSubmatch(text, -1) {
			millis += number(part[1]) * unitMillis[part[2]]
		}
		return millis, true
	case datePattern.MatchString(text):
		if date, err := time.Parse(time.RFC3339, text); err == nil {
			return float64(date.UnixMilli()) - nowMillis, true
		}
	}
	return 0, false
}

func numberIn(text string) (float64, bool) {
	if !numberPattern.MatchString(text) {
		return 0, false
	}
	return number(text), true
}

// number reads a text that a pattern has found to be a number.
func number(digits string) float64 {
	value, _ := strconv.ParseFloat(digits, 64)
	return value
}

func firstGroup(pattern *regexp.Regexp, text string) string {
	if found := pattern.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}
