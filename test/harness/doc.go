// Package harness has what the end-to-end tests share: brokers in the test's process that a test can stop and crash, a
// client that publishes requests, targets that keep what arrives, and requests that go unanswered. Servers, processes
// and fake time are those of natstest.
package harness
