// Package embedded runs a NATS server with JetStream inside the broker's process, for one host.
//
//	Config ──▶ Start ──▶ Server ── URL, TLS     for the broker and other clients on this host
//	   ▲                   │    ── Disk, Store  checks for /readyz
//	   │                   └─ Keep ─▶ Restart   when its disk was full, and takes data again
//	ReadFile (users, accounts, TLS, limits: a configuration file of nats-server's)
//
// # Invariants
//
//   - One process has the directory: two servers on one store destroy it. The lock lasts until the process ends, in
//     whatever way; the file stays.
//   - A write that fails is noticed in the server's log, since nats-server reports it nowhere else. The server never
//     writes to that stream again. So it is restarted as soon as the disk takes data.
//   - A key that belongs to a setting, or that a single server cannot have, is refused in the file and not overruled.
//
// The errors name the settings (DELAY_EMBEDDED_DIR and so on), since their readers do not know this package.
package embedded
