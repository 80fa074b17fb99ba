package main

import "github.com/spf13/cobra"

func (a *app) deadCommand() *cobra.Command {
	return a.operations(&cobra.Command{
		Use:   "dead",
		Short: "List, show, resend and remove dead letters",
		Long: `List, show, resend and remove dead letters. A dead letter is a message that the broker could not deliver. It
has the payload and the headers of the message, a code and a reason. It is kept until it is resent or removed.`,
	})
}

func (a *app) pendingCommand() *cobra.Command {
	return a.operations(&cobra.Command{
		Use:   "pending",
		Short: "Find waiting messages by target and due time, and show one",
	})
}
