package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Digests returns a digest of each setting that all instances of a broker should have in common, by the name of its
// environment variable. An instance reports digests and no values, because values contain names of tenants.
func (c Config) Digests() map[string]string {
	digests := make(map[string]string)
	for name, value := range map[string]any{
		"DELAY_LEVELS": c.Ladder.String(), "DELAY_RETRY": []any{c.RetryLadder.String(), c.RetryRules, c.RetryJitter},
		"DELAY_ATTEMPTS": []any{c.Attempts, c.AttemptRules}, "DELAY_MAX_DELAY": c.MaxDelay, "DELAY_DELIVER": c.Deliver,
		"DELAY_SLACK": c.Slack, "DELAY_REPLY_TIMEOUT": c.ReplyTimeout, "DELAY_RATE": c.Rates,
		"DELAY_RATE_BY_KEY": c.RatesByKey, "DELAY_IN_PROGRESS": c.InProgress,
		"DELAY_IN_PROGRESS_BY_KEY": c.InProgressByKey, "DELAY_MAX_PENDING": c.MaxPending,
		"DELAY_MAX_PENDING_BYTES": c.MaxPendingBytes, "DELAY_STORAGE": c.Storage, "DELAY_JOURNAL": c.Journal,
		"DELAY_JOURNAL_BYTES": c.JournalBytes, "DELAY_TIMER_HISTORY": c.TimerHistory, "DELAY_TARGETS": c.Targets,
		"DELAY_REPLY_PREFIXES": c.ReplyPrefixes, "DELAY_HEADER_TARGETS": c.HeaderTargets,
		"DELAY_SCHEDULES": c.Schedules, "DELAY_DEDUP_WINDOW": c.DedupWindow,
	} {
		sum := sha256.Sum256(fmt.Append(nil, value))
		digests[name] = hex.EncodeToString(sum[:4])
	}
	return digests
}
