// Package embedded runs a NATS server with JetStream inside the broker's process, for one host.
//
//	Config ──▶ Start ──▶ Server ── URL, TLS     for the broker and other clients on this host
//	   ▲                   │    ── DiskCheck, StoreCheck  for /readyz
//	   │                   └─ WatchDisk ─▶ Restart          after the disk was full and accepts data again
//	ReadFile: users, accounts, TLS and limits from a configuration file of nats-server
//
// # Invariants
//
//   - One process locks the directory, because two servers on one store destroy it. It unlocks the directory only after
//     its server has stopped. The lock file is never removed. The store inside a server's directory is refused as the
//     directory of another server.
//   - nats-server reports a failed write only in its log, so the package reads the log. After the failure, the server
//     does not write to the stream until it restarts. So the package restarts the server when the disk accepts data
//     again. The restarted server reads the configuration file again, but does not change what it requires of clients.
//   - The configuration file must not contain a key that belongs to a setting, or that a single server cannot have.
//     Such a key is an error, and is not silently replaced.
//
// The errors name the settings (DELAY_EMBEDDED_DIR and so on), since their readers do not know this package.
package embedded
