# NATS CLI: requests schedules from a broker with DELAY_SCHEDULES=schedules.orders.>=orders.>, in nats-server's format
nats pub -J schedules.orders.42 '{"id":42}' --schedule-after 3s --schedule-dest orders.expire
nats pub -J schedules.orders.43 '{"id":43}' --schedule-after 3s --schedule-dest orders.expire
# cancelled, by an empty message
nats pub -J schedules.orders.43 ''
