package message

import (
	"fmt"
	"strings"
)

// Code is the reason of a dead letter, for programs. It is a token of the dead letter's subject, and so a part of the
// protocol: codes are added, never renamed.
type Code string

// The codes.
const (
	BadHeaders  Code = "bad_headers"        // the header block cannot be decoded or passed on
	BadTime     Code = "bad_time"           // the duration or time cannot be parsed
	BadTarget   Code = "bad_target"         // the target is missing, malformed, or forbidden
	BadOption   Code = "bad_option"         // a request header is unknown, or its value is invalid
	TimeTwice   Code = "time_twice"         // the subject and a header both have a time, or a header is duplicate
	UntilEarly  Code = "until_before_level" // Delay-Until is before the end of the level in the subject
	TooFar      Code = "too_far"            // the delay exceeds the maximum
	TooLarge    Code = "too_large"          // too large to be moved or delivered
	Expired     Code = "expired"            // Delay-Expires passed before the message could be delivered
	Undelivered Code = "undelivered"        // the target refused every attempt
	BadTimer    Code = "bad_timer"          // on a timer's subject: an invalid key, or no request
	BadInternal Code = "bad_internal"       // a message below delaysys that this broker did not write
)

// Codes returns the codes that a dead letter may have.
func Codes() []Code {
	return []Code{
		BadHeaders, BadTime, BadTarget, BadOption, TimeTwice, UntilEarly, TooFar, TooLarge, Expired, Undelivered, BadTimer,
		BadInternal,
	}
}

// NewerFormat is a code that no dead letter has: a message of a newer broker stays in its lane until a newer broker
// reads it.
const NewerFormat Code = "newer_format"

// UnknownKey is a code that no dead letter has: the message waits until the keys have been read again.
const UnknownKey Code = "unknown_key"

// maxSentence is the maximum length of a sentence, in bytes. Together with the other headers of a dead letter it must
// fit into the part of max_payload that the streams keep free.
const maxSentence = 600

// Problem is the reason why a message cannot be delivered as requested.
type Problem struct {
	Code     Code
	Sentence string // what is wrong and what to change, for people
}

func (p *Problem) Error() string { return string(p.Code) + ": " + p.Sentence }

// maxReason is the maximum length of a target's reason that a message carries, in bytes.
const maxReason = 256

// Problemf returns a problem. It truncates a sentence that is too long for a header.
func Problemf(code Code, format string, args ...any) *Problem {
	return &Problem{Code: code, Sentence: oneLine(fmt.Sprintf(format, args...), maxSentence)}
}

// oneLine converts untrusted text to a header value of at most maxBytes.
func oneLine(s string, maxBytes int) string {
	s = strings.Map(printable, s)
	if len(s) > maxBytes {
		s = strings.ToValidUTF8(s[:maxBytes], "")
	}
	return s
}

// Reason returns a target's reason for a refusal in the form that a message carries.
func Reason(s string) string { return strings.TrimSpace(oneLine(s, maxReason)) }

// printable replaces control characters, for header values.
func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return ' '
	}
	return r
}

// Excerpt quotes the beginning of a client's text for a sentence. It escapes all but printable ASCII.
func Excerpt(s string) string {
	const maxBytes = 48
	if len(s) > maxBytes {
		return fmt.Sprintf("%+q…", s[:maxBytes])
	}
	return fmt.Sprintf("%+q", s)
}
