package page

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"delaybroker/broker/text"
)

const (
	// planLifetime is the time after which a plan expires.
	planLifetime = 2 * time.Minute
	// maxRequest is the maximum size of the body of a request, in bytes.
	maxRequest = 256 << 10
)

// A plannedChange is an operation with the fixed parameters of each object, or of a selection.
type plannedChange struct {
	Operation string                `json:"operation"`
	Items     []map[string][]string `json:"items"`
	Count     uint64                `json:"count"` // of objects that would be changed
	Expiry    time.Time             `json:"until"`
	Line      string                `json:"line"` // the equivalent command, for the log
}

// decode parses the body of a request: one JSON object, without unknown fields. If the body is invalid, decode responds
// with an error and returns false.
func decode(w http.ResponseWriter, r *http.Request, into any) bool {
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
	body.DisallowUnknownFields()
	err := body.Decode(into)
	if err == nil {
		if _, more := body.Token(); more != io.EOF {
			err = errors.New("want one JSON object and nothing after it")
		}
	}
	if err != nil {
		writeError(w, http.StatusBadRequest, "invalid request: "+text.Printable(err.Error(), 300))
	}
	return err == nil
}

// seal returns the ticket of a planned change: the change and its authentication code. The code is valid for one token.
func seal(c plannedChange, token Token) string {
	text, _ := json.Marshal(c) // cannot fail: texts, numbers and a time
	code := base64.RawURLEncoding
	return code.EncodeToString(text) + "." + code.EncodeToString(sum256(text, token))
}

// sum256 returns the authentication code of a text, with the token as the key.
func sum256(text []byte, token Token) []byte {
	h := hmac.New(sha256.New, []byte("plan "+token.Secret))
	h.Write(text)
	return h.Sum(nil)
}

// unseal returns the change of a ticket, or errTicket.
func unseal(ticket string, token Token, now time.Time) (c plannedChange, err error) {
	code := base64.RawURLEncoding
	body, sum, _ := strings.Cut(ticket, ".")
	text, textErr := code.DecodeString(body)
	mac, macErr := code.DecodeString(sum)
	if textErr != nil || macErr != nil || !hmac.Equal(mac, sum256(text, token)) || json.Unmarshal(text, &c) != nil ||
		now.After(c.Expiry) {
		return plannedChange{}, errTicket
	}
	return c, nil
}
