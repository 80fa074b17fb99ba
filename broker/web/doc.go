// Package web serves a broker's state over HTTP: to supervisors, Prometheus, browsers, and the command delaybroker.
//
//	/healthz, /livez   reports whether the engine's loops run; if not, the process must be restarted
//	/readyz            reports whether the broker delivers messages: connections, lanes, the embedded server's storage
//	/status            broker.Status as JSON
//	/metrics           the metrics of package metrics
//	/                  the page of package page
//
// /healthz and /livez do not depend on NATS. Otherwise, in an outage of NATS, supervisors would restart every broker,
// and a restart would not help. No probe changes the state of the broker.
package web
