package jsapi

import (
	"errors"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
)

// Forbidden reads the subject from the error for a publish that the server refused because a permission is missing. The
// server reports that to the connection, apart from all answers, and nats.go's error has no field for the subject.
func Forbidden(err error) (subject string, ok bool) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return "", false
	}
	_, quoted, ok := strings.Cut(err.Error(), "Permissions Violation for Publish to ")
	if !ok {
		return "", false
	}
	subject, unquoted := strconv.Unquote(quoted)
	return subject, unquoted == nil
}
