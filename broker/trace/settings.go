package trace

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"delaybroker/broker/batch"
)

// The environment variables that this package reads itself. The SDK and its exporter also read variables.
const (
	envDisabled  = "OTEL_SDK_DISABLED"
	envExporter  = "OTEL_TRACES_EXPORTER"
	envSampler   = "OTEL_TRACES_SAMPLER"
	envEndpoint  = "OTEL_EXPORTER_OTLP_ENDPOINT"
	envProtocol  = "OTEL_EXPORTER_OTLP_PROTOCOL"
	envQueue     = "OTEL_BSP_MAX_QUEUE_SIZE"
	envBatch     = "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"
	envDelay     = "OTEL_BSP_SCHEDULE_DELAY" // in milliseconds
	envTimeout   = "OTEL_BSP_EXPORT_TIMEOUT" // in milliseconds
	tracesPrefix = "OTEL_EXPORTER_OTLP_TRACES_"
)

const (
	defaultQueue   = 8192 // messages, of some 400 bytes each
	maxQueue       = 1 << 20
	defaultBatch   = 512
	defaultDelay   = time.Second
	defaultTimeout = 30 * time.Second
)

// Environment returns the value of a variable, as os.Getenv does.
type Environment func(name string) string

// Enabled reports whether the environment requests traces. It returns an error if the environment requires a feature
// that this package lacks, or if the endpoint is invalid. The caller should log the error and run without traces: an
// operator often sets these variables for all programs of a cluster, and they must not stop a broker.
func Enabled(env Environment) (bool, error) {
	endpointName, endpoint := env.exporterValue(envEndpoint)
	exporter := env(envExporter)
	if endpoint == "" || exporter == "none" || strings.EqualFold(strings.TrimSpace(env(envDisabled)), "true") {
		return false, nil
	}
	if exporter != "" && exporter != "otlp" {
		return false, fmt.Errorf("%s=%q: only otlp is supported", envExporter, exporter)
	}
	if name, p := env.exporterValue(envProtocol); p != "" && p != "http/protobuf" {
		return false, fmt.Errorf("%s=%q: only http/protobuf is supported, on port 4318 of most collectors", name, p)
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		// The value may contain a password.
		return false, fmt.Errorf("%s is not a URL such as http://collector:4318", endpointName)
	}
	return true, nil
}

// exporterValue returns the name and the value of an exporter's variable: of the one for traces or, if it is empty, of
// the one for all signals.
func (env Environment) exporterValue(name string) (variable, value string) {
	variable = tracesPrefix + strings.TrimPrefix(name, "OTEL_EXPORTER_OTLP_")
	if v := env(variable); v != "" {
		return variable, v
	}
	return name, env(name)
}

// parentBased reports whether the sampler follows the producer's decision. It does so by default.
func (env Environment) parentBased() bool {
	independent := []string{"always_on", "always_off", "traceidratio"}
	return !slices.Contains(independent, strings.ToLower(strings.TrimSpace(env(envSampler))))
}

// limits returns the limits of the queue, in messages.
func (env Environment) limits() batch.Limits {
	room := env.number(envQueue, defaultQueue, maxQueue)
	return batch.Limits{
		Room: room, Full: min(env.number(envBatch, defaultBatch, maxQueue), room),
		Wait: env.milliseconds(envDelay, defaultDelay),
	}
}

// number returns the value of a variable, at most limit. If the value is not a positive number, it returns fallback.
func (env Environment) number(name string, fallback, limit int) int {
	if n, err := strconv.Atoi(env(name)); err == nil && n > 0 {
		return min(n, limit)
	}
	return fallback
}

func (env Environment) milliseconds(name string, fallback time.Duration) time.Duration {
	return time.Duration(env.number(name, int(fallback.Milliseconds()), int(time.Hour.Milliseconds()))) * time.Millisecond
}
