//! Nodes out of service, at once or when they are idle, and back into it.

use rota_transport::message::{NodeService, ToUser};
use rota_transport::value::{Name, Text, is_plain};

use super::Engine;
use super::refusal::Refusal;
use crate::record::Record;
use crate::roles::Person;
use crate::state::Moment;

/// Takes a node out of service, or back into it.
pub(super) fn drain(
    engine: &mut Engine,
    moment: Moment,
    person: &Person,
    name: &Name,
    service: NodeService,
    reason: &Text,
) -> Result<Vec<ToUser>, Refusal> {
    let cluster = engine.state.cluster();
    let node = cluster.node(name.as_str()).ok_or_else(|| Refusal::NoSuchNode(name.clone()))?;
    if !is_plain(reason.as_str()) {
        return Err(Refusal::ReasonControlCharacter);
    }
    let (is_drained, is_closed) = (cluster.is_drained(node), cluster.closed().contains(&node));
    let (user, reason) = (person.name.to_string(), reason.to_string());
    match service {
        NodeService::Out | NodeService::OutWhenIdle if is_drained => {
            return Err(Refusal::IsDrained(name.clone()));
        }
        NodeService::OutWhenIdle if is_closed => return Err(Refusal::IsClosed(name.clone())),
        NodeService::OutWhenIdle => engine.state.record(moment, Record::NodeClosed { node, user, reason }),
        NodeService::Out => {
            let record = Record::NodeDrained { node, is_drained: true, user, reason };
            engine.state.record(moment, record);
        }
        NodeService::In if !is_drained && !is_closed => return Err(Refusal::IsNotDrained(name.clone())),
        NodeService::In => {
            if is_closed {
                engine.state.record(moment, Record::NodeOpened { node, user: user.clone() });
            }
            if is_drained {
                let record = Record::NodeDrained { node, is_drained: false, user, reason: String::new() };
                engine.state.record(moment, record);
                let is_there = engine.state.agents().get(name).is_some_and(|agent| agent.is_known());
                if is_there {
                    engine.state.record(moment, Record::NodeReturned { node });
                }
            }
        }
    }
    Ok(vec![ToUser::End])
}
