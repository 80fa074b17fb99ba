package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"delaybroker/broker"
	"delaybroker/broker/config"
	"delaybroker/broker/operation"
	"delaybroker/cmd/delaybroker/nack"
	"delaybroker/cmd/delaybroker/settings"
)

func (a *app) streamsCommand() *cobra.Command {
	var format, maxPayload string
	var replicas int
	c := &cobra.Command{
		Use:   "streams",
		Short: "Print the streams that a broker needs, as manifests",
		Long: `Print the streams that a broker with these settings needs, for operators who create them without the broker and
without "delaybroker provision". The command sends no request. For brokers on such streams, set DELAY_PROVISION=verify:
they then report missing streams, and create none.

--as json   a list of JetStream stream configurations, each for "nats stream add --config" or the JetStream API
--as nack   manifests for NACK, the Kubernetes controller, for kubectl apply -f -

Brokers seal the messages between lanes: a seal, made with a secret, proves that a broker wrote the message. A manifest
has no secret, since many people can read a manifest, and each run of the command would generate another secret. So set
DELAY_SECRET for the brokers: without it, they do not start.`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error { return a.printStreams(format, maxPayload, replicas) },
	}
	c.Flags().StringVar(&format, "as", "json", "json or nack")
	addCompletion(c, "as", "json", "nack")
	c.Flags().StringVar(&maxPayload, "max-payload", "1MiB",
		"the servers' max_payload; the streams accept slightly less")
	addParams(c, operation.Count(&replicas, "replicas",
		"copies of each stream; 0 for DELAY_STREAM_REPLICAS, where auto means 3 here", 0, 0, config.MaxReplicas))
	return c
}

func (a *app) printStreams(format, maxPayload string, replicas int) error {
	payload, err := parseSize(maxPayload)
	if err != nil {
		return fmt.Errorf("%w: --max-payload: %w", errUsage, err)
	}
	cfg, err := settings.Read()
	if err != nil {
		return err
	}
	if replicas > 0 {
		cfg.Broker.Replicas = replicas
	}
	streams, err := broker.StreamsOf(cfg.Broker)
	if err != nil {
		return err
	}
	specs := streams.Wanted(payload, true)
	switch format {
	case "json":
		configs := make([]jetstream.StreamConfig, len(specs))
		for i, s := range specs {
			configs[i] = s.Config()
		}
		a.PrintJSON(configs)
		return nil
	case "nack":
		return nack.Print(a.Out, specs)
	}
	return fmt.Errorf("%w: --as %q: want json or nack", errUsage, format)
}

// parseSize parses a size from 64KiB to 64MiB. As in NATS configurations, KB and KiB are both 1024 bytes.
func parseSize(s string) (int64, error) {
	number := strings.TrimRight(s, "KMGiB")
	unit, ok := map[string]int64{
		"": 1, "B": 1, "K": 1 << 10, "KB": 1 << 10, "KiB": 1 << 10, "M": 1 << 20, "MB": 1 << 20, "MiB": 1 << 20,
	}[s[len(number):]]
	n, err := strconv.ParseInt(number, 10, 64)
	// Less than minBytes leaves no room for messages. nats-server refuses a max_payload above maxBytes.
	const minBytes, maxBytes = 64 << 10, 64 << 20
	if !ok || err != nil || n < 1 || n > maxBytes || n*unit < minBytes || n*unit > maxBytes {
		return 0, fmt.Errorf("%q: want bytes, KiB or MiB, from 64KiB to 64MiB", s)
	}
	return n * unit, nil
}
