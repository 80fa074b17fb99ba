package harness

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"

	"delaybroker/test/natstest"
)

// Main is a package's TestMain. Its default for -parallel is twice that of go test, because tests in real time mostly
// wait, and leave the processors to tests in fake time.
func Main(m *testing.M) {
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	code := m.Run()
	natstest.RemoveBroker()
	os.Exit(code)
}
