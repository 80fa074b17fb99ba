// Package web answers over HTTP how a broker is: to supervisors, to Prometheus, and to the verbs that ask it.
//
//	/healthz, /livez   whether a restart would help: the engine's loops turn
//	/readyz            whether messages are delivered now: connections, lanes, the embedded server's storage
//	/status            broker.Status as JSON
//	/metrics           package metrics
//	/                  package page, by Source.Page
//
// The first two never ask NATS: an outage there would restart every broker, for nothing. None of the probes changes
// anything.
package web
