package sluice

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

var (
	// itemPattern finds an item of a list of RFC 9651: a text and its parameters, such as "hour";r=12;t=60.
	itemPattern = regexp.MustCompile(
		`"((?:[^"\\]|\\.)*)"((?:; *[a-z*][a-z0-9_.*-]*(?:=(?:"(?:[^"\\]|\\.)*"|[^\s",;]*))?)*)`)
	parameterPattern = regexp.MustCompile(`; *([a-z*][a-z0-9_.*-]*)(?:=("(?:[^"\\]|\\.)*"|[^\s",;]*))?`)
	escapePattern    = regexp.MustCompile(`\\(.)`)
	wholePattern     = regexp.MustCompile(`^[0-9]{1,15}$`)
)

// structuredItem is a text in a list of RFC 9651. Its parameters are as the header has them: a text has quotation marks.
type structuredItem struct {
	text       string
	parameters map[string]string
}

// structuredItems reads the texts in a list of RFC 9651. It ignores all other items.
func structuredItems(header string) []structuredItem {
	var items []structuredItem
	for _, item := range itemPattern.FindAllStringSubmatch(header, -1) {
		parameters := map[string]string{}
		for _, parameter := range parameterPattern.FindAllStringSubmatch(item[2], -1) {
			parameters[parameter[1]] = parameter[2]
		}
		items = append(items, structuredItem{escapePattern.ReplaceAllString(item[1], "$1"), parameters})
	}
	return items
}

// wholeNumber reads a whole number of 0 or more.
func wholeNumber(text string) (int64, bool) {
	if !wholePattern.MatchString(text) {
		return 0, false
	}
	number, err := strconv.ParseInt(text, 10, 64)
	return number, err == nil
}

// quotaIn reads the headers RateLimit-Policy and RateLimit of draft-ietf-httpapi-ratelimit-headers-11.
func quotaIn(header http.Header) []Quota {
	left := map[string]map[string]string{}
	for _, item := range structuredItems(valueOf(header, "RateLimit")) {
		left[item.text] = item.parameters
	}
	var quota []Quota
	for _, policy := range structuredItems(valueOf(header, "RateLimit-Policy")) {
		limit, hasLimit := wholeNumber(policy.parameters["q"])
		remaining, hasRemaining := wholeNumber(left[policy.text]["r"])
		reset, hasReset := wholeNumber(left[policy.text]["t"])
		if !hasLimit || !hasRemaining || !hasReset {
			continue
		}
		window, _ := wholeNumber(policy.parameters["w"])
		quota = append(quota, Quota{
			Name:      policy.text,
			Limit:     limit,
			Remaining: remaining,
			Reset:     secondsOf(reset),
			Window:    secondsOf(window),
		})
	}
	return quota
}

// valueOf returns a header with several lines as one line.
func valueOf(header http.Header, name string) string {
	return strings.Join(header.Values(name), ", ")
}
