package streams

import "fmt"

// CheckServer returns ErrServerTooOld for a nats-server before 2.10. Streams of such a server have no metadata, so the
// broker could not recognize its own streams. Call CheckServer before the first stream is created. A version that
// cannot be parsed is a development build, and is accepted.
func CheckServer(version string) error {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return nil
	}
	if major < 2 || major == 2 && minor < 10 {
		return fmt.Errorf("%w: %s; upgrade it to 2.14.10, 2.15.3 or later", ErrServerTooOld, version)
	}
	return nil
}
