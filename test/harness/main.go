package harness

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"

	"delaybroker/test/natstest"
)

// Main is a package's TestMain. It runs twice as many tests at a time as go test does by itself, unless -parallel says
// otherwise: tests in real time mostly wait, and leave the processors to those in fake time.
func Main(m *testing.M) {
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	code := m.Run()
	natstest.RemoveBroker()
	os.Exit(code)
}
