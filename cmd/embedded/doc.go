// Package embedded runs a NATS server with JetStream inside the broker's process, for one host.
//
//	Config ──▶ Start ──▶ Server ── URL, TLS     how the broker, and others on this host, reach it
//	   ▲                   │    ── Disk, Store  what it says for /readyz
//	   │                   └─ Keep ─▶ Restart   when its disk was full, and takes data again
//	ReadFile (users, accounts, TLS, limits: a configuration file of nats-server's)
//
// # Invariants
//
//   - One process has the directory: two servers on one store destroy it. The lock lasts until the process ends in any
//     way; the file stays.
//   - A write that fails is heard in the server's log, since nats-server reports it nowhere else. It never tries that
//     stream again. So it is restarted as soon as the disk takes data.
//   - What the settings say, or what a server that is alone cannot have, is refused in the file and not overruled.
//
// Its errors name the settings (DELAY_EMBEDDED_DIR and so on), since people read them who know nothing of this package.
package embedded
