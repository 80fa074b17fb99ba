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
	BadHeaders  Code = "bad_headers"        // the headers cannot be decoded, or cannot be passed on
	BadTime     Code = "bad_time"           // the duration or time cannot be parsed
	BadTarget   Code = "bad_target"         // the target is missing, malformed, or forbidden
	BadOption   Code = "bad_option"         // a request header is unknown, invalid, or not allowed in this request
	TimeTwice   Code = "time_twice"         // the request has two times, or a time and Delay-Cancel, or a header twice
	UntilEarly  Code = "until_before_level" // Delay-Until is before the end of the level in the subject
	TooFar      Code = "too_far"            // the delay, or the interval of a series, exceeds DELAY_MAX_DELAY
	TooLarge    Code = "too_large"          // the message is too large for a lane or its target, or to recur so often
	Expired     Code = "expired"            // Delay-Expires passed before the message could be delivered
	Undelivered Code = "undelivered"        // the target refused every attempt
	BadTimer    Code = "bad_timer"          // a timer has a bad key, recurrence or Delay-Max-Wait, or no time or cancel
	BadInternal Code = "bad_internal"       // a message that only brokers may write has no valid seal, or is malformed
)

// Codes returns the codes that a dead letter may have.
func Codes() []Code {
	return []Code{
		BadHeaders, BadTime, BadTarget, BadOption, TimeTwice, UntilEarly, TooFar, TooLarge, Expired, Undelivered, BadTimer,
		BadInternal,
	}
}

// With one of these problems, a message waits, and does not become a dead letter.
const (
	NewerFormat Code = "newer_format" // a newer broker wrote the message, which waits until a newer broker reads it
	UnknownKey  Code = "unknown_key"  // the key of the seal is unknown; the message waits for the next read of the keys
)

// maxSentence is the maximum length of a sentence, in bytes. The sentence and the other headers of a dead letter must
// fit into the part of max_payload that the streams keep free.
const maxSentence = 600

// Problem is the reason why a message cannot be delivered as requested.
type Problem struct {
	Code     Code
	Sentence string // the error and the change that repairs it, for people
}

func (p *Problem) Error() string { return string(p.Code) + ": " + p.Sentence }

const maxReason = 256 // bytes

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

// Reason returns a reason as one line of at most maxReason bytes, for a header.
func Reason(s string) string { return strings.TrimSpace(oneLine(s, maxReason)) }

// printable replaces an ASCII control character by a space.
func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return ' '
	}
	return r
}

// Excerpt quotes the beginning of untrusted text, at most 48 bytes. It escapes all characters except printable ASCII.
func Excerpt(s string) string {
	const maxBytes = 48
	if len(s) > maxBytes {
		return fmt.Sprintf("%+q…", s[:maxBytes])
	}
	return fmt.Sprintf("%+q", s)
}
