package layout

import "fmt"

// CheckServer returns ErrServerTooOld for a nats-server before 2.10. Its streams keep no metadata, so none could be
// recognised as ours. The check belongs before the first stream is created. A version that cannot be read is one of a
// development build, and passes.
func CheckServer(version string) error {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return nil
	}
	if major < 2 || major == 2 && minor < 10 {
		return fmt.Errorf("%w: %s; upgrade it to 2.12.12, 2.14.3 or later", ErrServerTooOld, version)
	}
	return nil
}
