//! The request as `rota submit` makes it.

use std::net::{Ipv4Addr, SocketAddr};

use rota_core::ids::JobId;
use rota_transport::identity::Credentials;
use rota_transport::message::{
    FromUser, JobConditions, JobRequest, JobStart, Launcher, LogLimits, OnHeadLost, Processes, ToUser,
};
use rota_transport::quic::{Connector, Listener, Peer};
use rota_transport::value::{Iterations, Text, ValueError, Wait};

use crate::{Failure, Folders, Run, together};

/// A server that takes every job in as number 7.
pub(crate) async fn serve(folders: &Folders) -> Result<SocketAddr, Failure> {
    let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), Credentials::load(&folders.head)?)?;
    let address = listener.address().ok_or("no address")?;
    tokio::spawn(async move {
        while let Some(arrival) = listener.accept().await {
            tokio::spawn(async move {
                let Ok(peer) = arrival.admit().await else { return };
                while let Ok(mut channel) = peer.accept().await {
                    tokio::spawn(async move {
                        channel.receiver.trust();
                        if let Ok(Some(FromUser::Submit { jobs, .. })) = channel.receiver.receive().await {
                            let taken = jobs.iter().map(|_| JobId(7)).collect();
                            // A client that is gone is noticed by the client.
                            let _ = channel.sender.send(&ToUser::Submitted(taken)).await;
                            let _ = channel.sender.send(&ToUser::End).await;
                            channel.sender.finish();
                        }
                    });
                }
            });
        }
    });
    Ok(address)
}

pub(crate) async fn run(
    folders: &Folders,
    address: SocketAddr,
    n_connections: usize,
    n_requests: usize,
) -> Result<Run, Failure> {
    let credentials = Credentials::load(&folders.user)?;
    let mut clients = Vec::new();
    for _ in 0..n_connections {
        // A socket for each, as gRPC has.
        let connector = Connector::new(&credentials)?;
        let peer = connector.connect_to(address).await?;
        clients.push((connector, peer));
    }
    let request = FromUser::Submit { jobs: vec![job()?], key: 1 };
    together(clients, n_requests, |client| {
        let request = request.clone();
        async move { ask(&client.1, &request).await }
    })
    .await
}

async fn ask(peer: &Peer, request: &FromUser) -> Result<(), Failure> {
    let mut channel = peer.open().await?;
    channel.receiver.trust();
    channel.sender.send(request).await?;
    channel.sender.finish();
    match channel.receiver.receive::<ToUser>().await? {
        Some(ToUser::Submitted(_)) => {}
        other => return Err(format!("no answer: {other:?}").into()),
    }
    match channel.receiver.receive::<ToUser>().await? {
        Some(ToUser::End) => Ok(()),
        other => Err(format!("no end: {other:?}").into()),
    }
}

fn job() -> Result<JobRequest, ValueError> {
    Ok(JobRequest {
        name: Text::new("train")?,
        tenant: Text::new("")?,
        priority: 0,
        model: Text::new("res50")?,
        batch: 64,
        gpus: 2,
        levels: Vec::new(),
        gpu_type: Text::new("V100")?,
        work: Iterations::new(1000.0)?,
        deadline: None,
        start: JobStart {
            launcher: Launcher::Process,
            argv: vec![Text::new("python")?, Text::new("train.py")?],
            env: vec![(Text::new("EPOCHS")?, Text::new("90")?)],
            working_directory: Text::new("/home/ada")?,
            checkpoint_directory: Text::new("/shared/ada")?,
            processes: Processes::PerGpu,
            on_head_lost: OnHeadLost::Stop,
            log: LogLimits { file_bytes: 1 << 20, n_files: 4 },
            grace: Wait::NONE,
            restart: Wait::NONE,
            checkpoint_every: Wait::NONE,
            most_failures: 5,
        },
        conditions: JobConditions::default(),
    })
}
