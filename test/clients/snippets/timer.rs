// Rust: cargo add async-nats, and tokio with its features macros and rt-multi-thread
use async_nats::jetstream::{self, context::PublishErrorKind};

// Returns the generation of the stored entry, or None if the timer was set or cancelled meanwhile, or has fired.
// After any other error, the entry may have been stored: publish again.
async fn timer(
    js: &jetstream::Context, subject: &'static str, header: &str, value: &str, body: &'static str, expect: Option<u64>,
) -> Result<Option<u64>, async_nats::Error> {
    let mut h = async_nats::HeaderMap::new();
    h.insert(header, value);
    if let Some(g) = expect {
        h.insert("Nats-Expected-Last-Subject-Sequence", g.to_string().as_str());
    }
    match js.publish_with_headers(subject, h, body.into()).await?.await {
        Ok(ack) if !ack.duplicate => Ok(Some(ack.sequence)),
        Ok(_) => Ok(None),
        Err(e) if e.kind() == PublishErrorKind::WrongLastSequence => Ok(None),
        Err(e) => Err(e.into()),
    }
}

#[tokio::main]
async fn main() -> Result<(), async_nats::Error> {
    let url = std::env::var("NATS_URL").unwrap_or("nats://127.0.0.1:4222".into());
    let js = jetstream::new(async_nats::connect(url).await?);
    // sets the timer only if there is none
    let g = timer(&js, "delaytimer.order-42.orders.expire", "Delay-For", "30m", r#"{"id":42}"#, Some(0)).await?;
    // moves the timer, with its body, only if its generation is still g
    timer(&js, "delaytimer.order-42.orders.expire", "Delay-For", "2s", r#"{"id":42}"#, g).await?;
    // sets and cancels another timer, which will never be delivered
    let g = timer(&js, "delaytimer.order-43.orders.expire", "Delay-For", "2s", r#"{"id":43}"#, None).await?;
    assert!(timer(&js, "delaytimer.order-43.orders.expire", "Delay-Cancel", "paid", "", g).await?.is_some());
    // the timer is cancelled already
    assert!(timer(&js, "delaytimer.order-43.orders.expire", "Delay-Cancel", "paid", "", g).await?.is_none());
    Ok(())
}
