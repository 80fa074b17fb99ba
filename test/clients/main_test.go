package clients

import (
	"testing"

	"delaybroker/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
