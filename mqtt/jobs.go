package mqtt

// Job publishes how far the device has come with a job, QoS 1 and retained.
func (c *Client) Job(id string, message []byte) {
	c.outbox.mailbox(topicKey{kind: kindJob, name: id}).PutBytes(message)
}
