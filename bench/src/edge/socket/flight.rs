//! Arrow Flight: batches put to a server, or exchanged with it, as one would move them between
//! services today.

use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Mutex;

use arrow::array::RecordBatch;
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::encode::{DictionaryHandling, FlightDataEncoderBuilder};
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_server::{FlightService, FlightServiceServer};
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightClient, FlightData, FlightDescriptor, FlightInfo,
    HandshakeRequest, HandshakeResponse, PollInfo, PutResult, SchemaResult, Ticket,
};
use futures_lite::{Stream, StreamExt, stream};
use tokio::sync::{mpsc, oneshot};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status, Streaming};

use crate::error::BenchError;
use crate::latency::ours::require_answer;
use crate::latency::road::Times;

use super::coalesced::runtime;
use super::load::Prebuilt;
use super::peer::{Meter, Received};
use super::tally::Tally;

/// Bytes of a message at most: as many as a batch needs, so that none is split.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// What is called at the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// `DoPut`.
    Put,
    /// `DoExchange`, which answers with nothing.
    Exchange,
}

/// Puts `count` batches, and waits until the server says that it has them.
///
/// # Errors
/// When the server fails.
pub(super) fn send(
    to: SocketAddr,
    call: Call,
    prebuilt: &Prebuilt,
    count: u64,
) -> Result<Meter, BenchError> {
    runtime()?.block_on(async {
        let mut client = client(to).await?;
        let meter = Meter::start();
        let data = FlightDataEncoderBuilder::new()
            .with_schema(prebuilt.schema())
            .with_max_flight_data_size(MESSAGE_BYTES_MAX)
            // As they are, and not unfolded.
            .with_dictionary_handling(DictionaryHandling::Resend)
            .build(stream::iter(prebuilt.batches(count).map(Ok)));
        match call {
            Call::Put => {
                let mut answers = client.do_put(data).await?;
                while let Some(answer) = answers.next().await {
                    answer?;
                }
            }
            Call::Exchange => {
                let mut answers = client.do_exchange(data).await?;
                while let Some(answer) = answers.next().await {
                    answer?;
                }
            }
        }
        Ok(meter)
    })
}

/// Sends batches by `DoExchange`, one after the other, and waits for each to come back.
///
/// # Errors
/// When the server fails, or another batch comes back.
pub(crate) fn ask(to: SocketAddr, asked: &[RecordBatch], count: u64) -> Result<Times, BenchError> {
    runtime()?.block_on(async {
        let mut client = client(to).await?;
        let (out, sent) = mpsc::channel(1);
        let sent = stream::unfold(sent, |mut sent: mpsc::Receiver<RecordBatch>| async {
            sent.recv().await.map(|batch| (Ok(batch), sent))
        });
        let data = FlightDataEncoderBuilder::new().build(sent);
        let mut answers = client.do_exchange(data).await?;
        let mut times = Times::begin();
        for (number, batch) in (0..count).zip(asked.iter().cycle()) {
            out.send(batch.clone()).await?;
            let answer = answers.next().await;
            times.is_back();
            require_answer(number, batch, answer.transpose()?.as_ref())?;
        }
        Ok(times)
    })
}

async fn client(to: SocketAddr) -> Result<FlightClient, BenchError> {
    let channel = Channel::from_shared(format!("http://{to}"))?.tcp_nodelay(true);
    Ok(FlightClient::new(channel.connect().await?))
}

/// Serves one call, and ends. What is exchanged is sent back where `echoes` says so.
///
/// # Errors
/// When it cannot serve, or something else comes.
pub(crate) fn receive(
    listener: TcpListener,
    echoes: bool,
    tally: Tally,
) -> Result<Received, BenchError> {
    listener.set_nonblocking(true)?;
    runtime()?.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let (sender, received) = oneshot::channel();
        let sink = Sink {
            echoes,
            waits: Mutex::new(Some((sender, tally))),
        };
        let service = FlightServiceServer::new(sink).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let server = Server::builder()
            .add_service(service)
            .serve_with_incoming(incoming);
        // The server goes on until the process ends; what it has received is enough.
        futures_lite::future::or(
            async {
                server.await?;
                Err(BenchError::new("the server ended before the stream did"))
            },
            async { Ok(received.await?) },
        )
        .await
    })
}

/// Takes one call.
struct Sink {
    echoes: bool,
    /// Who waits for what comes, and what adds it up; the first call takes both.
    waits: Mutex<Option<(oneshot::Sender<Received>, Tally)>>,
}

impl Sink {
    /// Takes all batches, and says what has come.
    async fn take(&self, request: Request<Streaming<FlightData>>) -> Result<(), Status> {
        let mut come = Come::begin(self)?;
        let mut batches = batches(request);
        while let Some(batch) = batches.next().await {
            come.tally.add(&batch?);
        }
        Ok(())
    }

    /// Sends every batch back, and says at the end what has come.
    fn send_back(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Result<Answers<FlightData>, Status> {
        let mut come = Come::begin(self)?;
        let batches = batches(request).map(move |batch| {
            // All of it goes with the stream, which it tells the end of.
            let come = &mut come;
            let batch = batch?;
            come.tally.add(&batch);
            Ok(batch)
        });
        let data = FlightDataEncoderBuilder::new().build(batches);
        Ok(Box::pin(data.map(|data| data.map_err(Status::from))))
    }
}

fn batches(request: Request<Streaming<FlightData>>) -> FlightRecordBatchStream {
    let data = request.into_inner();
    let data = data.map(|data| data.map_err(FlightError::from));
    FlightRecordBatchStream::new_from_flight_data(data)
}

/// What has come so far; it is told at the end.
struct Come {
    meter: Meter,
    tally: Tally,
    received: Option<oneshot::Sender<Received>>,
}

impl Come {
    /// # Errors
    /// When there was a call before.
    fn begin(sink: &Sink) -> Result<Self, Status> {
        let waits = sink.waits.lock().ok().and_then(|mut waits| waits.take());
        let (received, tally) = waits.ok_or_else(|| Status::unavailable("there is one call"))?;
        Ok(Self {
            meter: Meter::start(),
            tally,
            received: Some(received),
        })
    }
}

impl Drop for Come {
    fn drop(&mut self) {
        if let Some(sender) = self.received.take() {
            // Nobody waits any more when the process is about to end.
            let _ = sender.send(self.meter.received(self.tally.total()));
        }
    }
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

fn not_served<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("only put and exchange"))
}

#[tonic::async_trait]
impl FlightService for Sink {
    type HandshakeStream = Answers<HandshakeResponse>;
    type ListFlightsStream = Answers<FlightInfo>;
    type DoGetStream = Answers<FlightData>;
    type DoPutStream = Answers<PutResult>;
    type DoExchangeStream = Answers<FlightData>;
    type DoActionStream = Answers<arrow_flight::Result>;
    type ListActionsStream = Answers<ActionType>;

    async fn do_put(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoPutStream>, Status> {
        self.take(request).await?;
        Ok(Response::new(Box::pin(stream::empty())))
    }

    async fn handshake(
        &self,
        _request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        not_served()
    }

    async fn list_flights(
        &self,
        _request: Request<Criteria>,
    ) -> Result<Response<Self::ListFlightsStream>, Status> {
        not_served()
    }

    async fn get_flight_info(
        &self,
        _request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        not_served()
    }

    async fn poll_flight_info(
        &self,
        _request: Request<FlightDescriptor>,
    ) -> Result<Response<PollInfo>, Status> {
        not_served()
    }

    async fn get_schema(
        &self,
        _request: Request<FlightDescriptor>,
    ) -> Result<Response<SchemaResult>, Status> {
        not_served()
    }

    async fn do_get(
        &self,
        _request: Request<Ticket>,
    ) -> Result<Response<Self::DoGetStream>, Status> {
        not_served()
    }

    async fn do_exchange(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoExchangeStream>, Status> {
        if self.echoes {
            return Ok(Response::new(self.send_back(request)?));
        }
        self.take(request).await?;
        Ok(Response::new(Box::pin(stream::empty())))
    }

    async fn do_action(
        &self,
        _request: Request<Action>,
    ) -> Result<Response<Self::DoActionStream>, Status> {
        not_served()
    }

    async fn list_actions(
        &self,
        _request: Request<Empty>,
    ) -> Result<Response<Self::ListActionsStream>, Status> {
        not_served()
    }
}
