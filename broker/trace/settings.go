package trace

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// The variables that this package reads itself. The SDK and its exporter read the others: see Asked.
const (
	envDisabled  = "OTEL_SDK_DISABLED"
	envExporter  = "OTEL_TRACES_EXPORTER"
	envSampler   = "OTEL_TRACES_SAMPLER"
	envEndpoint  = "OTEL_EXPORTER_OTLP_ENDPOINT"
	envProtocol  = "OTEL_EXPORTER_OTLP_PROTOCOL"
	envQueue     = "OTEL_BSP_MAX_QUEUE_SIZE"
	envBatch     = "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"
	envDelay     = "OTEL_BSP_SCHEDULE_DELAY" // milliseconds
	envTimeout   = "OTEL_BSP_EXPORT_TIMEOUT" // milliseconds
	tracesPrefix = "OTEL_EXPORTER_OTLP_TRACES_"
)

const (
	defaultQueue   = 8192 // of some 400 bytes each
	mostQueue      = 1 << 20
	defaultBatch   = 512
	defaultDelay   = time.Second
	defaultTimeout = 30 * time.Second
)

// Environment looks up a variable, as os.Getenv does.
type Environment func(name string) string

// Asked reports whether the environment names a collector. The error says why that cannot be had although somebody
// asked for it. It should be logged, and stop nothing: these variables are often set for all programs of a cluster, and
// no message should wait because of them.
func Asked(env Environment) (bool, error) {
	endpoint := env.ofTraces(envEndpoint)
	exporter := env(envExporter)
	if endpoint == "" || exporter == "none" || strings.EqualFold(strings.TrimSpace(env(envDisabled)), "true") {
		return false, nil
	}
	if exporter != "" && exporter != "otlp" {
		return false, fmt.Errorf("%s=%q: only otlp can be had", envExporter, exporter)
	}
	if p := env.ofTraces(envProtocol); p != "" && p != "http/protobuf" {
		return false, fmt.Errorf("%s=%q: only http/protobuf can be had, which collectors have on port 4318", envProtocol, p)
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return false, fmt.Errorf("%s is no URL such as http://collector:4318", envEndpoint) // it may have a password in it
	}
	return true, nil
}

// ofTraces is a variable of the exporter: that of traces, or that of all signals.
func (env Environment) ofTraces(name string) string {
	if v := env(tracesPrefix + strings.TrimPrefix(name, "OTEL_EXPORTER_OTLP_")); v != "" {
		return v
	}
	return env(name)
}

// heeds reports whether the sampler does as the producer did. It is so unless the environment names another.
func (env Environment) heeds() bool {
	switch strings.ToLower(strings.TrimSpace(env(envSampler))) {
	case "always_on", "always_off", "traceidratio":
		return false
	}
	return true
}

// number is a variable, or the default where it is none, or out of bounds.
func (env Environment) number(name string, otherwise, most int) int {
	if n, err := strconv.Atoi(env(name)); err == nil && n > 0 {
		return min(n, most)
	}
	return otherwise
}

func (env Environment) milliseconds(name string, otherwise time.Duration) time.Duration {
	return time.Duration(env.number(name, int(otherwise.Milliseconds()), int(time.Hour.Milliseconds()))) * time.Millisecond
}
