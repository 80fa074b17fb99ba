// Package web reports a broker's state over HTTP: to supervisors, to Prometheus, and to subcommands.
//
//	/healthz, /livez   whether the process must be restarted: the engine's loops run
//	/readyz            whether messages are delivered now: connections, lanes, the embedded server's storage
//	/status            broker.Status as JSON
//	/metrics           package metrics
//	/                  package page, by Source.Page
//
// /healthz and /livez send no request to NATS: in an outage of NATS, supervisors would restart every broker for
// nothing. No probe changes anything.
package web
